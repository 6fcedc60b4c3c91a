package vlan_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// someTraffic is a few flows of each node, of all sizes up to what a cable carries.
func someTraffic(r *rand.Rand, nodes int) (t vlan.Traffic) {
	for from := range nodes {
		for range 1 + r.IntN(2) {
			if to := r.IntN(nodes); to != from {
				t = append(t, vlan.Flow{From: from, To: to, Rate: vlan.Rate(1+r.IntN(10)) * 100 * vlan.Mbps})
			}
		}
	}
	return t.Normalise()
}

// light is a fifth of some traffic: no link is full.
func light(t vlan.Traffic) vlan.Traffic {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate /= 5
	}
	return t
}

// watch runs a model, and checks after each period what must hold whatever the traffic.
type watch struct {
	*model
	t       *testing.T
	name    string
	old     *vlan.Plan // before the latest changes, or nil
	moved   map[vlan.Pair]mono.Time
	changes int
	last    int // period with a change
	periods int
	slack   float64 // from which factor on a worst link is worse
}

const (
	mostChanges = 4
	rest        = 5 * period
)

// newWatch watches a controller that begins with any plan. Where links are full it cannot know what is wanted, and may be wrong by
// some of it; where they are not, it sees all.
func newWatch(t *testing.T, name string, top *vlan.Topology, seed uint64) *watch {
	m := newModel(top, start(top, seed), vlan.ControlConfig{MaxChanges: mostChanges, Rest: rest})
	return &watch{model: m, t: t, name: name, moved: make(map[vlan.Pair]mono.Time), slack: 1.15}
}

// step lets a period pass in which one traffic after the other is wanted, for as long each.
func (w *watch) step(wanted ...vlan.Traffic) []vlan.Decision {
	w.t.Helper()
	for _, t := range wanted {
		w.wants(t)
		w.run(period / time.Duration(len(wanted)))
	}
	before := w.plan
	decisions := w.decide()
	w.periods++
	w.checkLimits(decisions)
	if len(wanted) == 1 {
		w.checkNotWorse()
	}
	w.old = nil
	if len(decisions) > 0 {
		w.changes += len(decisions)
		w.last = w.periods
		if decisions[0].Reason == vlan.Relieve {
			w.old = before
		}
	}
	for b := range w.plan.Nodes {
		for a := range b {
			if got, want := w.control.Plan().PairVID(a, b), w.plan.PairVID(a, b); got != want {
				w.t.Errorf("%s, period %d: the controller takes pair %d-%d to have VID %d, and it is %d", w.name, w.periods, a, b, got, want)
			}
		}
	}
	return decisions
}

// checkLimits makes sure that few pairs change at once, and none too often.
func (w *watch) checkLimits(decisions []vlan.Decision) {
	w.t.Helper()
	if len(decisions) > mostChanges {
		w.t.Errorf("%s, period %d: %d changes, want %d at most", w.name, w.periods, len(decisions), mostChanges)
	}
	for _, d := range decisions {
		at, moved := w.moved[d.Change.Pair]
		if d.Reason == vlan.Relieve && moved && w.now.Sub(at) < rest {
			w.t.Errorf("%s, period %d: %v: it changed %v before, want %v", w.name, w.periods, d, w.now.Sub(at), rest)
		}
		w.moved[d.Change.Pair] = w.now
	}
}

// checkNotWorse makes sure that changes of the period before have been taken back if with what was wanted since they have made the
// worst link worse.
func (w *watch) checkNotWorse() {
	w.t.Helper()
	if w.old == nil {
		return
	}
	if is, would := w.worst(w.plan), w.worst(w.old); is > would*w.slack {
		w.t.Errorf("%s, period %d: the worst link is at %.2f for longer than a period, and was at %.2f before the changes", w.name, w.periods, is, would)
	}
}

// Constant traffic, of which the counters show only what links let pass: in the end nothing changes, and the worst link is nearly
// as good as if everything were known.
func TestControlConverges(t *testing.T) {
	const periods = 80
	sum, best := 0.0, 0.0
	for seed := range uint64(45) {
		top := network(t, []string{"vbft:4x4x4", "vbft:4x2x3", "vbft3:2x2x2x2x2"}[seed%3])
		w := newWatch(t, fmt.Sprint("seed ", seed), top, seed)
		want := someTraffic(rand.New(rand.NewPCG(seed, 5)), len(top.Hosts))
		if seed%2 == 1 {
			want, w.slack = light(want), 1.03
		}
		w.wants(want)
		first, natural := w.worst(w.plan), w.natural()
		for range periods {
			w.step(want)
		}
		_, ideal, err := vlan.Optimize(top, natural, w.plan, vlan.OptimizeOptions{Effort: 50_000})
		if err != nil {
			t.Fatal(err)
		}
		final := w.worst(w.plan)
		sum, best = sum+final, best+ideal.After.Worst
		if final > first*1.001 || final > ideal.After.Worst*1.4 {
			t.Errorf("seed %d: the worst link went from %.2f to %.2f, and could be at %.2f", seed, first, final, ideal.After.Worst)
		}
		if pairs := len(want.Pairs()); w.changes > 2*pairs || w.last > periods/2 {
			t.Errorf("seed %d: %d changes among %d pairs, the last in period %d", seed, w.changes, pairs, w.last)
		}
	}
	t.Logf("worst links are %.3f of the best on average", sum/best)
	if sum > 1.1*best {
		t.Errorf("worst links are %.3f of the best on average, want 1.1", sum/best)
	}
}

// Traffic that changes every 25 periods, and swings a little all the time.
func TestControlFollowsTraffic(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 6))
		top := network(t, "vbft:4x4x4")
		w := newWatch(t, fmt.Sprint("seed ", seed), top, seed)
		for range 6 {
			want := someTraffic(r, len(top.Hosts))
			for range 25 {
				w.step(swing(r, want, 0.05))
			}
			w.wants(want)
			_, ideal, err := vlan.Optimize(top, w.natural(), w.plan, vlan.OptimizeOptions{Effort: 50_000})
			if err != nil {
				t.Fatal(err)
			}
			if final := w.worst(w.plan); final > ideal.After.Worst*1.6 && final > 1.2 {
				t.Errorf("seed %d, period %d: the worst link is at %.2f, and could be at %.2f", seed, w.periods, final, ideal.After.Worst)
			}
		}
		if w.changes > 6*32 {
			t.Errorf("seed %d: %d changes for 6 traffics of some 24 pairs", seed, w.changes)
		}
	}
}

// swing changes each rate by chance, by up to that part.
func swing(r *rand.Rand, t vlan.Traffic, part float64) vlan.Traffic {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate *= vlan.Rate(1 + part*(2*r.Float64()-1))
	}
	return t
}

// Two traffics that alternate, faster than the controller looks, as fast, or a little slower: it finds what is good for both, or leaves
// things as they are. It does not run after them.
func TestControlDoesNotFlap(t *testing.T) {
	const periods = 100
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		top := network(t, "vbft:4x4x4")
		a, b := someTraffic(r, len(top.Hosts)), someTraffic(r, len(top.Hosts))
		if seed%2 == 1 {
			a, b = light(a), light(b)
		}
		pairs := len(a.Pairs()) + len(b.Pairs())
		for name, wanted := range map[string]func(k int) []vlan.Traffic{
			"ten times a period": func(int) []vlan.Traffic { return []vlan.Traffic{a, b, a, b, a, b, a, b, a, b} },
			"three in two periods": func(k int) []vlan.Traffic {
				return [][]vlan.Traffic{{a, b, b}, {a, a, b}}[k%2]
			},
			"each period":  func(k int) []vlan.Traffic { return []vlan.Traffic{[]vlan.Traffic{a, b}[k%2]} },
			"every second": func(k int) []vlan.Traffic { return []vlan.Traffic{[]vlan.Traffic{a, b}[k/2%2]} },
		} {
			w := newWatch(t, fmt.Sprintf("seed %d, %s", seed, name), top, seed)
			if w.slack = math.Inf(1); seed%2 == 1 { // else it cannot know what alternates behind full links
				w.slack = 1.03
			}
			for k := range periods {
				w.step(wanted(k)...)
			}
			if w.changes > pairs || name == "ten times a period" && w.last > periods*2/3 {
				t.Errorf("seed %d, %s: %d changes among %d pairs, the last in period %d of %d", seed, name, w.changes, pairs, w.last, periods)
			}
		}
	}
}

// both is two nodes that send to each other all they can.
func both(pairs ...vlan.Pair) (t vlan.Traffic) {
	for _, p := range pairs {
		t = append(t, vlan.Flow{From: p.A, To: p.B, Rate: vlan.Gbps}, vlan.Flow{From: p.B, To: p.A, Rate: vlan.Gbps})
	}
	return t.Normalise()
}

// collision is a controller that has seen 0-4 and 1-5 share VID 1, long enough to have just moved one of them to VID 2, which pairs 2-6 and
// 3-7 have.
func collision(t *testing.T) (w *watch, moved, stayed vlan.Pair) {
	t.Helper()
	top := network(t, "vbft:2x4x4")
	plan := start(top, 0)
	for node := range plan.Nodes {
		plan.Nodes[node].VID = 1
	}
	plan.Pairs = map[vlan.Pair]transport.VID{{A: 2, B: 6}: 2, {A: 3, B: 7}: 2}
	m := newModel(top, plan, vlan.ControlConfig{MaxChanges: mostChanges, Rest: rest})
	w = &watch{model: m, t: t, name: t.Name(), moved: make(map[vlan.Pair]mono.Time), slack: 1.03}
	moved, stayed = vlan.Pair{A: 0, B: 4}, vlan.Pair{A: 1, B: 5}
	for k := range 4 { // the first sample, and three periods of patience
		d := w.step(both(moved, stayed))
		if k < 3 && len(d) == 0 {
			continue
		}
		if want := (vlan.Change{Pair: moved, From: 1, To: 2}); k < 3 || len(d) != 1 || d[0].Change != want || d[0].Reason != vlan.Relieve {
			t.Fatalf("period %d: %v, want %v in period 4", w.periods, d, want)
		}
	}
	return w, moved, stayed
}

func TestControlKeepsWhatIsBetter(t *testing.T) {
	w, moved, stayed := collision(t)
	if w.control.State() != vlan.Judging {
		t.Errorf("%v after a change, want judging", w.control.State())
	}
	for range 10 {
		if d := w.step(both(moved, stayed)); len(d) > 0 {
			t.Errorf("period %d: %v, want nothing", w.periods, d)
		}
	}
	if _, u := w.control.Worst(); w.control.State() != vlan.Watching || math.Abs(u-1) > 0.01 {
		t.Errorf("%v, worst link %v; want watching, 1", w.control.State(), u)
	}
}

// The traffic changes while a change is made, so that the change makes it worse: it is taken back after one period, and the pair rests.
func TestControlTakesBackWhatMadeItWorse(t *testing.T) {
	w, moved, stayed := collision(t)
	other := vlan.Pair{A: 2, B: 6} // now wants the VID that was free, and the pair that stayed is silent
	d := w.step(both(moved, other))
	if want := (vlan.Change{Pair: moved, From: 2, To: 1}); len(d) != 1 || d[0].Reason != vlan.TakeBack || d[0].Change != want {
		t.Fatalf("%v, want %v taken back", d, want)
	}
	if want := "is at 2.00 of its rate, and the worst link would be at 1.00 without the change"; !strings.Contains(d[0].Why, want) {
		t.Errorf("why: %s; want %q", d[0].Why, want)
	}
	for range 9 {
		for _, d := range w.step(both(moved, stayed, other)) {
			if d.Change.Pair == moved {
				t.Errorf("period %d: %v: the pair has not rested for twice %v", w.periods, d, rest)
			}
		}
	}
	if w.worst(w.plan) > 1 {
		t.Errorf("worst link %v: the other pair could have moved", w.worst(w.plan))
	}
}

// What is not carried out is not in force, is in the log, and is not asked for again at once.
func TestControlRefused(t *testing.T) {
	w, moved, stayed := collision(t)
	refused := vlan.Change{Pair: moved, From: 1, To: 2}
	w.control.Refused(w.now, []vlan.Change{refused}, "node 4 does not answer")
	w.set(moved, 1)
	w.old = nil
	if vid := w.control.Plan().PairVID(moved.A, moved.B); vid != 1 {
		t.Errorf("pair %v has VID %d in the plan, want 1", moved, vid)
	}
	log := w.control.Log(nil)
	if got, want := log[len(log)-1].String(), "pair 0-4: VID 2 -> 1: not carried out: node 4 does not answer"; got != want {
		t.Errorf("log: %s; want %s", got, want)
	}
	delete(w.moved, moved)
	for range 6 {
		for _, d := range w.step(both(moved, stayed)) {
			if d.Change.Pair == moved {
				t.Errorf("period %d: %v: the pair has not rested", w.periods, d)
			}
		}
	}
	if w.worst(w.plan) > 1 {
		t.Errorf("worst link %v: the other pair could have moved", w.worst(w.plan))
	}
}

// Another plan is put in force as a whole: the controller goes on from there.
func TestControlReplace(t *testing.T) {
	w, moved, stayed := collision(t)
	before := w.control.Plan()
	if err := w.control.Replace(start(network(t, "vbft:4x4x4"), 0)); !errors.Is(err, vlan.ErrBadPlan) || w.control.Plan() != before {
		t.Errorf("a plan of 16 nodes: %v, want ErrBadPlan and the one before", err)
	}
	other := must(w.plan.With(map[vlan.Pair]transport.VID{moved: 3, stayed: 3}))
	if err := w.control.Replace(other); err != nil {
		t.Fatal(err)
	}
	w.plan, w.old = other, nil
	clear(w.moved)
	for range 12 {
		w.step(both(moved, stayed))
	}
	if w.worst(w.plan) > 1 || w.changes != 2 {
		t.Errorf("worst link %v after %d changes, want 1 after 2: one before and one since", w.worst(w.plan), w.changes)
	}
}

// A node whose counters cannot be read keeps its pairs' VIDs; the others go on, and so does it when it is back.
func TestControlWithoutANode(t *testing.T) {
	w, _, _ := collision(t)
	late, early := vlan.Pair{A: 2, B: 6}, vlan.Pair{A: 3, B: 7}
	w.wants(both(late, early))
	for range 8 {
		w.run(period)
		for _, d := range w.decide(6) {
			if d.Change.Pair == late {
				t.Errorf("%v, and node 6 is missing", d)
			}
		}
	}
	if w.worst(w.plan) > 1 {
		t.Errorf("worst link %v: pair %v could have moved", w.worst(w.plan), early)
	}
}

// Counters that begin anew, counters that show more than a cable carries, and nodes that come back do no harm.
func TestControlWithCountersThatBeginAnew(t *testing.T) {
	w, moved, stayed := collision(t)
	w.step(both(moved, stayed))
	for k := range 20 {
		node := k % 8
		if k%2 == 0 {
			clear(w.bytes[node])
		}
		w.run(period)
		if k%2 == 1 {
			for key := range w.bytes[node] {
				w.bytes[node][key] += 1e15
			}
		}
		if d := w.decide((k + 3) % 8); len(d) > 0 {
			t.Errorf("period %d: %v, want nothing", k, d)
		}
	}
	flows := w.control.Traffic()
	for _, f := range flows {
		if math.Abs(float64(f.Rate/vlan.Gbps)-1) > 0.01 {
			t.Errorf("flow %v, want 1G", f)
		}
	}
	if len(flows) != 4 {
		t.Errorf("flows %v, want the 4 that there are", flows)
	}
	for k := range 8 { // what is counted since the counters began anew counts
		less := both(moved, stayed)
		for i := range less {
			less[i].Rate *= 1 - vlan.Rate(k+1)/10
		}
		for node := range w.bytes {
			clear(w.bytes[node])
		}
		w.step(less)
	}
	if _, u := w.control.Worst(); math.Abs(u-0.3) > 0.05 {
		t.Errorf("worst link %.2f, want about 0.30", u)
	}
}

// Somebody else changes a pair: it is taken as it is, and left alone for a while.
func TestControlTakesForeignChangesAsTheyAre(t *testing.T) {
	w, moved, stayed := collision(t)
	w.step(both(moved, stayed))
	w.set(moved, 1) // by the program itself, which has its reasons
	w.wants(both(moved, stayed))
	for range 3 {
		w.run(period)
		if d := w.decide(); len(d) > 0 {
			t.Errorf("%v, want nothing yet", d)
		}
	}
	log := w.control.Log(nil)
	if got, want := log[len(log)-1].String(), "pair 0-4: VID 2 -> 1: its frames have that VID: somebody else has changed it"; got != want {
		t.Errorf("log: %s; want %s", got, want)
	}
	for range 6 {
		for _, d := range w.step(both(moved, stayed)) {
			if d.Change.Pair == moved {
				t.Errorf("%v: it was changed by somebody else just before", d)
			}
		}
	}
	if w.worst(w.plan) > 1 {
		t.Errorf("worst link %v: the other pair could have moved", w.worst(w.plan))
	}
}

// Two pairs that wish for less than a link each: where the wish is not seen, it is found out, and remembered.
func TestControlLearnsWhatIsWanted(t *testing.T) {
	w, moved, stayed := collision(t)
	less := both(moved, stayed)
	for i := range less {
		less[i].Rate = 0.6 * vlan.Gbps
	}
	for range 8 {
		w.step(less)
	}
	if _, u := w.control.Worst(); math.Abs(u-0.6) > 0.01 {
		t.Errorf("worst link %.2f, want 0.60", u)
	}
}

// Five pairs that want 0.6 each, on four links: two of them share a link, whichever they are. As these look as if they wanted
// 1.0 each, it seems worth while to let another pair be one of them, for ever, unless what is found out on the way is remembered.
func TestControlDoesNotRotate(t *testing.T) {
	top := network(t, "vbft:2x4x5")
	plan := start(top, 0)
	plan.Pairs = nil
	var pairs []vlan.Pair
	for node := range plan.Nodes {
		plan.Nodes[node].VID, plan.Nodes[node].Priority = transport.VID(node%4+1), 0
		if node < 5 {
			pairs = append(pairs, vlan.Pair{A: node, B: node + 5})
		}
	}
	want := both(pairs...)
	for i := range want {
		want[i].Rate = 0.6 * vlan.Gbps
	}
	m := newModel(top, plan, vlan.ControlConfig{MaxChanges: mostChanges, Rest: rest})
	w := &watch{model: m, t: t, name: t.Name(), moved: make(map[vlan.Pair]mono.Time), slack: 1.03}
	for range 60 {
		w.step(want)
	}
	if w.changes > 3 {
		t.Errorf("%d changes, the last in period %d; want 3 at most", w.changes, w.last)
	}
	if _, u := w.control.Worst(); math.Abs(u-1.2) > 0.01 {
		t.Errorf("worst link taken for %.2f, want 1.20", u)
	}
}

func TestControlIsTheSameEachTime(t *testing.T) {
	run := func() []vlan.Decision {
		w := newWatch(t, "twice", network(t, "vbft:4x4x4"), 9)
		r := rand.New(rand.NewPCG(9, 9))
		for range 4 {
			want := someTraffic(r, 16)
			for range 12 {
				w.step(want)
			}
		}
		return w.control.Log(nil)
	}
	if first, second := run(), run(); len(first) == 0 || !slices.Equal(first, second) {
		t.Errorf("one run decides %v, and another %v", first, second)
	}
}

func TestControlNamesBadInput(t *testing.T) {
	top := network(t, "vbft:4x4x4")
	plan := start(top, 1)
	for want, cfg := range map[string]vlan.ControlConfig{
		"period -1s":     {Period: -time.Second},
		"weight 2":       {Weight: 2},
		"gain 1":         {Gain: 1},
		"cost -1":        {Cost: -1},
		"patience -1":    {Patience: -1},
		"patience 61":    {Patience: 61},
		"max changes -1": {MaxChanges: -1},
		"rest -1s":       {Rest: -time.Second},
		"quiet NaN":      {Quiet: math.NaN()},
	} {
		if _, err := vlan.NewController(mono.At(0), top, plan, cfg); err == nil || !strings.Contains(err.Error(), "control: "+want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	if _, err := vlan.NewController(mono.At(0), top, nil, vlan.ControlConfig{}); !errors.Is(err, vlan.ErrBadPlan) {
		t.Errorf("no plan: %v, want ErrBadPlan", err)
	}
	if _, err := vlan.NewController(mono.At(0), &vlan.Topology{}, plan, vlan.ControlConfig{}); !errors.Is(err, vlan.ErrBadTopology) {
		t.Errorf("no topology: %v, want ErrBadTopology", err)
	}
	c, err := vlan.NewController(mono.At(0), top, plan, vlan.ControlConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Observe(vlan.Sample{Node: 1, At: mono.At(time.Second)}); err != nil {
		t.Error(err)
	}
	at, _ := c.Deadline()
	c.Advance(at, nil)
	for want, s := range map[string]vlan.Sample{
		"node 16 (want 0 to 15)":          {Node: 16, At: mono.At(2 * time.Second)},
		"node 1: 1s before":               {Node: 1},
		"bytes to node 16":                {Node: 2, Sent: []vlan.SentTo{{Node: 16}}},
		"bytes to node 2":                 {Node: 2, Sent: []vlan.SentTo{{Node: 2}}},
		"two counters of VID 7 to node 3": {Node: 2, Sent: []vlan.SentTo{{Node: 3, VID: 7}, {Node: 3, VID: 7}}},
	} {
		if err := c.Observe(s); !errors.Is(err, vlan.ErrBadSample) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want ErrBadSample with %q", s, err, want)
		}
	}
}

// The log keeps the latest decisions.
func TestControlLogIsBounded(t *testing.T) {
	w, moved, _ := collision(t)
	for k := range 1500 {
		w.control.Refused(w.now, []vlan.Change{{Pair: moved, From: 1, To: 2}}, fmt.Sprint(k))
	}
	log := w.control.Log(nil)
	if len(log) != 1000 || !strings.HasSuffix(log[999].Why, "1499") {
		t.Errorf("%d entries, the last %v; want 1000, and number 1499", len(log), log[len(log)-1])
	}
}

// A driver reads counters when the controller wants it to, and carries out what it decides. Here two nodes send by one link as much as it
// takes, and count what passes.
func ExampleController() {
	topology, _ := vlan.ParseTopology("vbft:2x2x2")
	plan := &vlan.Plan{VIDs: []transport.VID{1, 2}}
	for i := range topology.Hosts {
		plan.Nodes = append(plan.Nodes, vlan.Station{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i)}, VID: 1})
	}
	c, err := vlan.NewController(mono.At(0), topology, plan, vlan.ControlConfig{Period: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for second := range uint64(5) {
		now, _ := c.Deadline()
		for node := range 2 { // 0 to 2, and 1 to 3: 62.5 MB/s each
			sent := vlan.SentTo{Node: node + 2, VID: 1, Bytes: second * 62_500_000}
			if err := c.Observe(vlan.Sample{Node: node, At: now, Sent: []vlan.SentTo{sent}}); err != nil {
				fmt.Println(err)
			}
		}
		for node := 2; node < 4; node++ { // which only receive
			if err := c.Observe(vlan.Sample{Node: node, At: now}); err != nil {
				fmt.Println(err)
			}
		}
		for _, d := range c.Advance(now, nil) {
			fmt.Println(d)
		}
	}
	// Output:
	// pair 0-2: VID 1 -> 2: link leaf0>top0 was at 2.00 of its rate, pairs 0-2 and 1-3 shared it; expected 1.00
}

// Flows share places by the definition of max-min fairness.
func TestFairShareAgreesWithNaive(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		top := network(t, "vbft:4x4x4")
		plan := start(top, seed)
		want := someTraffic(r, len(top.Hosts))
		got, naive := vlan.FairShare(top, plan, want), maxMin(top, plan, want)
		for i := range got {
			if math.Abs(got[i]-naive[i]) > 1e-6*float64(vlan.Gbps) {
				t.Fatalf("seed %d: flow %v gets %v, want %v", seed, want[i], got[i], naive[i])
			}
		}
	}
}

// What a controller of 1,024 nodes with 20,000 flows costs in a period in which it finds nothing to do, and in one in which it does.
func BenchmarkControl(b *testing.B) {
	top := network(b, "vbft:32x32x32")
	m := newModel(top, start(top, 1), vlan.ControlConfig{})
	m.want = dense(len(top.Hosts), 20_000, 1)
	m.rates = make([]float64, len(m.want)) // as if nothing were full: the model is slow
	for i, f := range m.want {
		m.rates[i] = float64(f.Rate)
	}
	for b.Loop() {
		m.ratesOf = m.plan
		m.run(period)
		m.decide()
	}
}
