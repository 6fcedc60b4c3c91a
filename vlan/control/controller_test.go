package control_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// someTraffic is a few flows of each node, of all sizes up to what a cable carries.
func someTraffic(r *rand.Rand, nodes int) (t traffic.Matrix) {
	for from := range nodes {
		for range 1 + r.IntN(2) {
			if to := r.IntN(nodes); to != from {
				t = append(t, traffic.Flow{From: from, To: to, Rate: topology.Rate(1+r.IntN(10)) * 100 * topology.Mbps})
			}
		}
	}
	return t.Normalise()
}

// light is a fifth of some traffic: no link is full.
func light(t traffic.Matrix) traffic.Matrix {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate /= 5
	}
	return t
}

// scale multiplies the random networks of the long simulations. CI sets it to 5.
var scale = flag.Int("control.scale", 1, "how many times the random networks are simulated")

// watch runs a model, and checks after each period what must hold whatever the traffic.
type watch struct {
	*model
	t       *testing.T
	name    string
	old     *plan.Plan // before the latest changes, or nil
	moved   map[plan.Pair]monotime.Time
	changes int
	last    int // period with a change
	periods int
	slack   float64 // from which factor on a worst link is worse
}

const (
	mostChanges = 4
	rest        = 5 * period
)

// newWatch watches a controller that begins with any plan. Where links are full it cannot know what
// is wanted, and may be wrong by some of it; where they are not, it sees all.
func newWatch(t *testing.T, name string, top *topology.Topology, seed uint64) *watch {
	m := newModel(top, vlantest.RandomPlan(top, seed), control.ControllerConfig{MaxChanges: mostChanges, FlapDamping: rest})
	return &watch{model: m, t: t, name: name, moved: make(map[plan.Pair]monotime.Time), slack: 1.15}
}

// step lets a period pass in which one traffic after the other is wanted, for as long each.
func (w *watch) step(wanted ...traffic.Matrix) []control.Decision {
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
		if decisions[0].Reason == control.Relieve {
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
func (w *watch) checkLimits(decisions []control.Decision) {
	w.t.Helper()
	if len(decisions) > mostChanges {
		w.t.Errorf("%s, period %d: %d changes, want %d at most", w.name, w.periods, len(decisions), mostChanges)
	}
	for _, d := range decisions {
		at, moved := w.moved[d.Change.Pair]
		if d.Reason == control.Relieve && moved && w.now.Sub(at) < rest {
			w.t.Errorf("%s, period %d: %v: it changed %v before, want %v", w.name, w.periods, d, w.now.Sub(at), rest)
		}
		w.moved[d.Change.Pair] = w.now
	}
}

// checkNotWorse makes sure that changes of the period before have been taken back if with what was
// wanted since they have made the worst link worse.
func (w *watch) checkNotWorse() {
	w.t.Helper()
	if w.old == nil {
		return
	}
	if is, would := w.worst(w.plan), w.worst(w.old); is > would*w.slack {
		w.t.Errorf("%s, period %d: the worst link is at %.2f for longer than a period, and was at %.2f before the changes", w.name, w.periods, is, would)
	}
}

// Constant traffic, of which the counters show only what links let pass: in the end nothing
// changes, and the worst link is nearly as good as if everything were known.
func TestControlConverges(t *testing.T) {
	const periods = 80
	sum, best := 0.0, 0.0
	for seed := range uint64(9 * *scale) {
		top := vlantest.Network(t, []string{"vbft:4x4x4", "vbft:4x2x3", "vbft3:2x2x2x2x2"}[seed%3])
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
		_, ideal, err := optimize.Plan(top, natural, w.plan, optimize.Options{Effort: 50_000})
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
	for seed := range uint64(2 * *scale) {
		r := rand.New(rand.NewPCG(seed, 6))
		top := vlantest.Network(t, "vbft:4x4x4")
		w := newWatch(t, fmt.Sprint("seed ", seed), top, seed)
		for range 6 {
			want := someTraffic(r, len(top.Hosts))
			for range 25 {
				w.step(swing(r, want, 0.05))
			}
			w.wants(want)
			_, ideal, err := optimize.Plan(top, w.natural(), w.plan, optimize.Options{Effort: 50_000})
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
func swing(r *rand.Rand, t traffic.Matrix, part float64) traffic.Matrix {
	t = slices.Clone(t)
	for i := range t {
		t[i].Rate *= topology.Rate(1 + part*(2*r.Float64()-1))
	}
	return t
}

// Two traffics that alternate, faster than the controller looks, as fast, or a little slower: it
// finds what is good for both, or leaves things as they are. It does not run after them.
func TestControlDoesNotFlap(t *testing.T) {
	periods := 100
	if testing.Short() {
		periods = 40
	}
	for seed := range uint64(2 * *scale) {
		r := rand.New(rand.NewPCG(seed, 7))
		top := vlantest.Network(t, "vbft:4x4x4")
		a, b := someTraffic(r, len(top.Hosts)), someTraffic(r, len(top.Hosts))
		if seed%2 == 1 {
			a, b = light(a), light(b)
		}
		pairs := len(a.Pairs()) + len(b.Pairs())
		for name, wanted := range map[string]func(k int) []traffic.Matrix{
			"ten times a period": func(int) []traffic.Matrix { return []traffic.Matrix{a, b, a, b, a, b, a, b, a, b} },
			"three in two periods": func(k int) []traffic.Matrix {
				return [][]traffic.Matrix{{a, b, b}, {a, a, b}}[k%2]
			},
			"each period":  func(k int) []traffic.Matrix { return []traffic.Matrix{[]traffic.Matrix{a, b}[k%2]} },
			"every second": func(k int) []traffic.Matrix { return []traffic.Matrix{[]traffic.Matrix{a, b}[k/2%2]} },
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

func TestControlIsTheSameEachTime(t *testing.T) {
	run := func() []control.Decision {
		w := newWatch(t, "twice", vlantest.Network(t, "vbft:4x4x4"), 9)
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
	top := vlantest.Network(t, "vbft:4x4x4")
	pl := vlantest.RandomPlan(top, 1)
	for want, cfg := range map[string]control.ControllerConfig{
		"period -1s":          {Period: -time.Second},
		"weight 2":            {Weight: 2},
		"gain 1":              {Gain: 1},
		"cost -1":             {Cost: -1},
		"hysteresis -1":       {Hysteresis: -1},
		"hysteresis 61":       {Hysteresis: 61},
		"max changes -1":      {MaxChanges: -1},
		"flap damping -1s":    {FlapDamping: -time.Second},
		"min utilization NaN": {MinUtilization: math.NaN()},
	} {
		if _, err := control.NewController(monotime.At(0), top, pl, cfg); err == nil || !strings.Contains(err.Error(), "control: "+want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
	if _, err := control.NewController(monotime.At(0), top, nil, control.ControllerConfig{}); !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("no plan: %v, want ErrInvalid", err)
	}
	if _, err := control.NewController(monotime.At(0), &topology.Topology{}, pl, control.ControllerConfig{}); !errors.Is(err, topology.ErrInvalid) {
		t.Errorf("no topology: %v, want ErrInvalid", err)
	}
	c, err := control.NewController(monotime.At(0), top, pl, control.ControllerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Observe(control.Sample{Node: 1, At: monotime.At(time.Second)}); err != nil {
		t.Error(err)
	}
	at, _ := c.Deadline()
	c.Advance(at, nil)
	for want, s := range map[string]control.Sample{
		"node 16 (want 0 to 15)":          {Node: 16, At: monotime.At(2 * time.Second)},
		"node 1: 1s before":               {Node: 1},
		"bytes to node 16":                {Node: 2, Sent: []control.SentTo{{Node: 16}}},
		"bytes to node 2":                 {Node: 2, Sent: []control.SentTo{{Node: 2}}},
		"two counters of VID 7 to node 3": {Node: 2, Sent: []control.SentTo{{Node: 3, VID: 7}, {Node: 3, VID: 7}}},
	} {
		if err := c.Observe(s); !errors.Is(err, control.ErrBadSample) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want ErrBadSample with %q", s, err, want)
		}
	}
}

// The log keeps the latest decisions.
func TestControlLogIsBounded(t *testing.T) {
	w, moved, _ := collision(t)
	for k := range 1500 {
		w.control.Refused(w.now, []plan.Change{{Pair: moved, From: 1, To: 2}}, fmt.Sprint(k))
	}
	log := w.control.Log(nil)
	if len(log) != 1000 || !strings.HasSuffix(log[999].Why, "1499") {
		t.Errorf("%d entries, the last %v; want 1000, and number 1499", len(log), log[len(log)-1])
	}
}

// A driver reads counters when the controller wants it to, and carries out what it decides. Here
// two nodes send by one link as much as it takes, and count what passes.
func ExampleController() {
	topology, _ := topology.Parse("vbft:2x2x2")
	pl := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for i := range topology.Hosts {
		pl.Nodes = append(pl.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i)}, VID: 1})
	}
	c, err := control.NewController(monotime.At(0), topology, pl, control.ControllerConfig{Period: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	for second := range uint64(5) {
		now, _ := c.Deadline()
		for node := range 2 { // 0 to 2, and 1 to 3: 62.5 MB/s each
			sent := control.SentTo{Node: node + 2, VID: 1, Bytes: second * 62_500_000}
			if err := c.Observe(control.Sample{Node: node, At: now, Sent: []control.SentTo{sent}}); err != nil {
				fmt.Println(err)
			}
		}
		for node := 2; node < 4; node++ { // which only receive
			if err := c.Observe(control.Sample{Node: node, At: now}); err != nil {
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

// What a controller of 1,024 nodes with 20,000 flows costs in a period in which it finds nothing to
// do, and in one in which it does.
func BenchmarkControl(b *testing.B) {
	top := vlantest.Network(b, "vbft:32x32x32")
	m := newModel(top, vlantest.RandomPlan(top, 1), control.ControllerConfig{})
	m.want = vlantest.RandomTraffic(len(top.Hosts), 20_000, 1)
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

// Pairs that somebody else has changed are taken over all at once: 8,128 of them take no longer than
// a period of any other kind.
func TestControlAdoptsManyPairsAtOnce(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x32")
	p := vlantest.RandomPlan(top, 1)
	now := monotime.At(time.Hour)
	c, err := control.NewController(now, top, p, control.ControllerConfig{Period: time.Second, MinUtilization: 10})
	if err != nil {
		t.Fatal(err)
	}
	n := len(top.Hosts)
	for period := range 4 {
		now = now.Add(time.Second)
		for from := range n {
			s := control.Sample{Node: from, At: now}
			for to := range n {
				if to != from {
					s.Sent = append(s.Sent, control.SentTo{Node: to, VID: p.PairVID(from, to)%4 + 1, Bytes: uint64(period)})
				}
			}
			if err := c.Observe(s); err != nil {
				t.Fatal(err)
			}
		}
		c.Advance(now, nil)
	}
	for from := range n {
		for to := range from {
			if got, want := c.Plan().PairVID(from, to), p.PairVID(from, to)%4+1; got != want {
				t.Fatalf("pair %d-%d: VID %d, want %d", from, to, got, want)
			}
		}
	}
}
