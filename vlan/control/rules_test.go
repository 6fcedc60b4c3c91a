package control_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// both is two nodes that send to each other all they can.
func both(pairs ...plan.Pair) (t traffic.Matrix) {
	for _, p := range pairs {
		t = append(t, traffic.Flow{From: p.A, To: p.B, Rate: topology.Gbps}, traffic.Flow{From: p.B, To: p.A, Rate: topology.Gbps})
	}
	return t.Normalise()
}

// collision is a controller that has seen 0-4 and 1-5 share VID 1, long enough to have just moved
// one of them to VID 2, which pairs 2-6 and 3-7 have.
func collision(t *testing.T) (w *watch, moved, stayed plan.Pair) {
	t.Helper()
	top := vlantest.Network(t, "vbft:2x4x4")
	pl := vlantest.RandomPlan(top, 0)
	for node := range pl.Nodes {
		pl.Nodes[node].VID = 1
	}
	pl.Pairs = map[plan.Pair]transport.VID{{A: 2, B: 6}: 2, {A: 3, B: 7}: 2}
	m := newModel(top, pl, control.ControllerConfig{MaxChanges: mostChanges, FlapDamping: rest})
	w = &watch{model: m, t: t, name: t.Name(), moved: make(map[plan.Pair]monotime.Time), slack: 1.03}
	moved, stayed = plan.Pair{A: 0, B: 4}, plan.Pair{A: 1, B: 5}
	for k := range 4 { // the first sample, and three periods of hysteresis
		d := w.step(both(moved, stayed))
		if k < 3 && len(d) == 0 {
			continue
		}
		if want := (plan.Change{Pair: moved, From: 1, To: 2}); k < 3 || len(d) != 1 || d[0].Change != want || d[0].Reason != control.Relieve {
			t.Fatalf("period %d: %v, want %v in period 4", w.periods, d, want)
		}
	}
	return w, moved, stayed
}

func TestControlKeepsWhatIsBetter(t *testing.T) {
	w, moved, stayed := collision(t)
	if w.control.State() != control.Evaluating {
		t.Errorf("%v after a change, want evaluating", w.control.State())
	}
	for range 10 {
		if d := w.step(both(moved, stayed)); len(d) > 0 {
			t.Errorf("period %d: %v, want nothing", w.periods, d)
		}
	}
	if _, u := w.control.Worst(); w.control.State() != control.Watching || math.Abs(u-1) > 0.01 {
		t.Errorf("%v, worst link %v; want watching, 1", w.control.State(), u)
	}
}

// The traffic changes while a change is made, so that the change makes it worse: it is taken back
// after one period, and the pair rests.
func TestControlRevertsWhatMadeItWorse(t *testing.T) {
	w, moved, stayed := collision(t)
	other := plan.Pair{A: 2, B: 6} // now wants the VID that was free, and the pair that stayed is silent
	d := w.step(both(moved, other))
	if want := (plan.Change{Pair: moved, From: 2, To: 1}); len(d) != 1 || d[0].Reason != control.Revert || d[0].Change != want {
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
	refused := plan.Change{Pair: moved, From: 1, To: 2}
	w.control.Refused(w.now, []plan.Change{refused}, "node 4 does not answer")
	if s := w.control.State(); s != control.Watching {
		t.Errorf("%v, want watching: what was refused is over", s)
	}
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
	if err := w.control.Replace(vlantest.RandomPlan(vlantest.Network(t, "vbft:4x4x4"), 0)); !errors.Is(err, plan.ErrInvalid) || w.control.Plan() != before {
		t.Errorf("a plan of 16 nodes: %v, want ErrInvalid and the one before", err)
	}
	other := vlantest.Must(w.plan.With(map[plan.Pair]transport.VID{moved: 3, stayed: 3}))
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

// A node whose counters cannot be read keeps its pairs' VIDs; the others go on, and so does it when
// it is back.
func TestControlWithoutANode(t *testing.T) {
	w, _, _ := collision(t)
	late, early := plan.Pair{A: 2, B: 6}, plan.Pair{A: 3, B: 7}
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

// Counters that begin anew, counters that show more than a cable carries, and nodes that come back
// do no harm.
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
		if math.Abs(float64(f.Rate/topology.Gbps)-1) > 0.01 {
			t.Errorf("flow %v, want 1G", f)
		}
	}
	if len(flows) != 4 {
		t.Errorf("flows %v, want the 4 that there are", flows)
	}
	for node := range w.bytes {
		clear(w.bytes[node])
	}
	for k := range 16 { // what is counted once the programs are back counts
		less := both(moved, stayed)
		for i := range less {
			less[i].Rate *= 1 - topology.Rate(min(k+1, 7))/10
		}
		w.step(less)
	}
	if _, u := w.control.Worst(); math.Abs(u-0.3) > 0.05 {
		t.Errorf("worst link %.2f, want about 0.30", u)
	}
}

// Somebody else changes a pair: it is taken as it is, and left alone for a while.
func TestControlAdoptsExternalChanges(t *testing.T) {
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

// Two pairs that wish for less than a link each: where the wish is not seen, it is found out, and
// remembered.
func TestControlLearnsWhatIsWanted(t *testing.T) {
	w, moved, stayed := collision(t)
	less := both(moved, stayed)
	for i := range less {
		less[i].Rate = 0.6 * topology.Gbps
	}
	for range 8 {
		w.step(less)
	}
	if _, u := w.control.Worst(); math.Abs(u-0.6) > 0.01 {
		t.Errorf("worst link %.2f, want 0.60", u)
	}
}

// Five pairs that want 0.6 each, on four links: two of them share a link, whichever they are. As
// these look as if they wanted 1.0 each, it seems worth while to let another pair be one of them,
// for ever, unless what is found out on the way is remembered.
func TestControlDoesNotRotate(t *testing.T) {
	top := vlantest.Network(t, "vbft:2x4x5")
	pl := vlantest.RandomPlan(top, 0)
	pl.Pairs = nil
	var pairs []plan.Pair
	for node := range pl.Nodes {
		pl.Nodes[node].VID, pl.Nodes[node].Priority = transport.VID(node%4+1), 0
		if node < 5 {
			pairs = append(pairs, plan.Pair{A: node, B: node + 5})
		}
	}
	want := both(pairs...)
	for i := range want {
		want[i].Rate = 0.6 * topology.Gbps
	}
	m := newModel(top, pl, control.ControllerConfig{MaxChanges: mostChanges, FlapDamping: rest})
	w := &watch{model: m, t: t, name: t.Name(), moved: make(map[plan.Pair]monotime.Time), slack: 1.03}
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

// Two pairs share a link, and one of them could leave it: nothing changes as long as the link's
// utilisation is below MinUtilization.
func TestControlLeavesQuietLinksAlone(t *testing.T) {
	for _, c := range []struct {
		least   float64
		rate    topology.Rate // of each flow, as part of the link's
		changes int
	}{{0, 0.04, 0}, {0, 0.06, 1}, {0.5, 0.2, 0}, {0.5, 0.25, 1}, {0.01, 0.04, 1}} {
		top := vlantest.Network(t, "vbft:2x4x4")
		pl := vlantest.RandomPlan(top, 0)
		for node := range pl.Nodes {
			pl.Nodes[node].VID = 1
		}
		pl.Pairs = nil
		m := newModel(top, pl, control.ControllerConfig{MinUtilization: c.least})
		want := both(plan.Pair{A: 0, B: 4}, plan.Pair{A: 1, B: 5})
		for i := range want {
			want[i].Rate *= c.rate
		}
		m.wants(want)
		var changes []control.Decision
		for range 10 {
			m.run(period)
			changes = append(changes, m.decide()...)
			if c.changes == 0 && m.control.State() != control.Watching {
				t.Errorf("%+v: %v, want watching", c, m.control.State())
			}
		}
		if len(changes) != c.changes {
			t.Errorf("%+v: changes %v", c, changes)
		}
	}
}

// A pair whose VID does not connect it gets one that does, though the worst link becomes worse by
// that, or has next to nothing to carry; and it keeps it.
func TestControlConnectsWhatIsCutOff(t *testing.T) {
	for name, rates := range map[string][2]topology.Rate{
		"full links":  {0.6e9, 0.5e9},
		"empty links": {1e6, 0},
	} {
		top := vlantest.Network(t, "vbft:2x2x2")
		top.VLANs[0].Links = top.VLANs[0].Links[1:] // leaf 0 has lost its cable to top 0
		cutOff := plan.Pair{A: 0, B: 2}
		inForce := vlantest.RandomPlan(top, 0)
		inForce.Pairs = map[plan.Pair]transport.VID{cutOff: 1, {A: 1, B: 3}: 2}
		now := monotime.At(time.Hour)
		c, err := control.NewController(now, top, inForce, control.ControllerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		sent := make([]float64, 2) // by nodes 0 and 1
		var changes []plan.Change
		for range 20 {
			for node := range sent {
				sent[node] += float64(rates[node]) / 8
				to := node + 2
				s := control.SentTo{Node: to, VID: c.Plan().PairVID(node, to), Bytes: uint64(sent[node])}
				if err := c.Observe(control.Sample{Node: node, At: now, Sent: []control.SentTo{s}}); err != nil {
					t.Fatal(err)
				}
				if err := c.Observe(control.Sample{Node: to, At: now}); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(time.Second)
			for _, d := range c.Advance(now, nil) {
				changes = append(changes, d.Change)
			}
		}
		if want := (plan.Change{Pair: cutOff, From: 1, To: 2}); len(changes) != 1 || changes[0] != want {
			t.Errorf("%s: %v, want %v", name, changes, want)
		}
	}
}
