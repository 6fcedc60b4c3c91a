package control

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// allOn parses a network, whose nodes all have VID 1, with a plan of that VID and others.
func allOn(t *testing.T, spec string, vids ...transport.VID) (*topology.Topology, *plan.Plan) {
	t.Helper()
	network, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{VIDs: vids}
	for i := range network.Hosts {
		p.Nodes = append(p.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: 1})
	}
	return network, p
}

func newController(t *testing.T, network *topology.Topology, p *plan.Plan, cfg ControllerConfig) *Controller {
	t.Helper()
	c, err := NewController(monotime.At(0), network, p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The defaults are those that the documents name.
func TestDefaults(t *testing.T) {
	f := FailoverConfig{VIDs: []transport.VID{1}}
	if err := f.complete(); err != nil {
		t.Fatal(err)
	}
	if DefaultProbe != 100*time.Millisecond || f.Probe != DefaultProbe || f.StandbyInterval != time.Second ||
		f.Timeout != 50*time.Millisecond || f.Misses != 3 || f.WaitToRestore != 5*time.Second {
		t.Errorf("%+v", f)
	}
	var c ControllerConfig
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	want := ControllerConfig{Period: time.Second, Weight: 0.5, Gain: 0.1, Cost: 0.002, Hysteresis: 3, MaxChanges: 8, FlapDamping: 10 * time.Second, MinUtilization: 0.1}
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
}

// Each field is taken up to its bounds, and refused beyond them.
func TestControllerConfigBounds(t *testing.T) {
	for _, c := range []struct {
		cfg  ControllerConfig
		good bool
	}{
		{ControllerConfig{Hysteresis: 1}, true}, {ControllerConfig{Hysteresis: 60}, true}, {ControllerConfig{Hysteresis: 61}, false}, {ControllerConfig{Hysteresis: -1}, false},
		{ControllerConfig{MaxChanges: 1}, true}, {ControllerConfig{MaxChanges: -1}, false},
		{ControllerConfig{Weight: 1}, true}, {ControllerConfig{Weight: 1.01}, false}, {ControllerConfig{Weight: -0.1}, false}, {ControllerConfig{Weight: math.NaN()}, false},
		{ControllerConfig{Gain: 0.99}, true}, {ControllerConfig{Gain: 1}, false}, {ControllerConfig{Gain: -0.1}, false},
		{ControllerConfig{Cost: 0.99}, true}, {ControllerConfig{Cost: 1}, false}, {ControllerConfig{Cost: -1}, false},
		{ControllerConfig{MinUtilization: -0.1}, false}, {ControllerConfig{MinUtilization: 5}, true},
		{ControllerConfig{FlapDamping: -1}, false}, {ControllerConfig{FlapDamping: 1}, true}, {ControllerConfig{Period: -1}, false},
		{ControllerConfig{Period: time.Millisecond - 1}, false}, {ControllerConfig{Period: time.Millisecond}, true},
	} {
		if err := c.cfg.complete(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

// Each field is taken up to its bounds, and refused beyond them. A standby interval is a probe's at
// least.
func TestFailoverConfigBounds(t *testing.T) {
	const least, day = time.Millisecond, 24 * time.Hour
	list := func(n int) (vids []transport.VID) {
		for vid := range n {
			vids = append(vids, transport.VID(vid+1))
		}
		return vids
	}
	for _, c := range []struct {
		cfg  FailoverConfig
		good bool
	}{
		{FailoverConfig{VIDs: list(0)}, false}, {FailoverConfig{VIDs: list(1)}, true},
		{FailoverConfig{VIDs: list(64)}, true}, {FailoverConfig{VIDs: list(65)}, false},
		{FailoverConfig{VIDs: []transport.VID{1, 4094}}, true}, {FailoverConfig{VIDs: []transport.VID{4095}}, false},
		{FailoverConfig{VIDs: []transport.VID{0}}, false}, {FailoverConfig{VIDs: []transport.VID{9, 1, 9}}, false},
		{FailoverConfig{VIDs: list(2), Probe: day, StandbyInterval: day, Timeout: day, Misses: 1000, WaitToRestore: day}, true},
		{FailoverConfig{VIDs: list(2), Probe: day + 1}, false}, {FailoverConfig{VIDs: list(2), StandbyInterval: day + 1}, false},
		{FailoverConfig{VIDs: list(2), Timeout: day + 1}, false}, {FailoverConfig{VIDs: list(2), WaitToRestore: day + 1}, false},
		{FailoverConfig{VIDs: list(2), Misses: 1001}, false}, {FailoverConfig{VIDs: list(2), Misses: -1}, false},
		{FailoverConfig{VIDs: list(2), Probe: least, StandbyInterval: least, Timeout: least, Misses: 1, WaitToRestore: least}, true},
		{FailoverConfig{VIDs: list(2), Probe: least - 1}, false}, {FailoverConfig{VIDs: list(2), StandbyInterval: least - 1}, false},
		{FailoverConfig{VIDs: list(2), Timeout: least - 1}, false}, {FailoverConfig{VIDs: list(2), WaitToRestore: least - 1}, false},
		{FailoverConfig{VIDs: list(2), Probe: -1}, false}, {FailoverConfig{VIDs: list(2), StandbyInterval: -1}, false},
		{FailoverConfig{VIDs: list(2), Timeout: -1}, false}, {FailoverConfig{VIDs: list(2), WaitToRestore: -1}, false},
	} {
		if err := c.cfg.complete(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	for _, c := range [][3]time.Duration{
		{0, 0, time.Second}, {0, time.Millisecond, 100 * time.Millisecond}, {time.Minute, 0, time.Minute},
		{time.Minute, time.Hour, time.Hour}, {time.Minute, time.Second, time.Minute},
	} {
		cfg := FailoverConfig{VIDs: list(1), Probe: c[0], StandbyInterval: c[1]}
		if err := cfg.complete(); err != nil || cfg.StandbyInterval != c[2] {
			t.Errorf("probe %v, standby interval %v: %v, %v; want %v", c[0], c[1], cfg.StandbyInterval, err, c[2])
		}
	}
}

// A pair that changes rests for FlapDamping, and for twice as long each time that it changes again
// soon, up to a bound. Each quiet rest afterwards halves that.
func TestPairsRestLongerEachTime(t *testing.T) {
	const second = time.Second
	c := &Controller{cfg: ControllerConfig{FlapDamping: second}, rests: make(map[plan.Pair]rest)}
	p := plan.Pair{A: 1, B: 2}
	now := monotime.At(time.Hour)
	for i, change := range []struct{ quiet, length time.Duration }{ // quiet: since the rest before
		{0, second}, {0, 2 * second}, {2*second - 1, 4 * second}, {-1, 8 * second}, {0, 16 * second}, {0, 32 * second},
		{0, 64 * second}, {0, 64 * second}, {64*second - 1, 64 * second}, // the bound
		{64 * second, 64 * second}, {128*second - 1, 64 * second}, {128 * second, 32 * second}, {32 * second, 32 * second},
		{4 * 32 * second, 4 * second}, {1000 * time.Hour, second}, {second, second}, {0, 2 * second},
	} {
		now = now.Add(change.quiet)
		if c.dampen(now, p); c.rests[p].until.Sub(now) != change.length {
			t.Errorf("change %d, after %v: rests for %v, want %v", i, change.quiet, c.rests[p].until.Sub(now), change.length)
		}
		now = c.rests[p].until
	}
	if other := (plan.Pair{A: 1, B: 3}); c.rests[other] != (rest{}) {
		t.Error("another pair rests")
	}
}

// The search of a period grows with the flows and the VIDs, up to a bound.
func TestEffort(t *testing.T) {
	for _, c := range [][3]int{{0, 4, 1}, {1, 1, 50}, {10, 4, 2000}, {1 << 20, 4, 1048576}} {
		if got := effort(c[0], c[1]); got != c[2] {
			t.Errorf("%d flows, %d VIDs: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// An advertisement with no path, with more than there can be, or with fewer than it says is none.
func TestAdvertisementsThatAreNone(t *testing.T) {
	body := func(version byte, count, entries int) []byte {
		return append([]byte{version, byte(count), 0, 1, 0, 0, 0, 9}, make([]byte, 2*entries)...)
	}
	for _, c := range []struct {
		name string
		body []byte
		good bool
	}{
		{"one path", body(adVersion, 1, 1), true}, {"as many as there can be", body(adVersion, 64, 64), true}, {"more follows", body(adVersion, 1, 2), true},
		{"empty", nil, false}, {"cut in its head", body(adVersion, 1, 0)[:7], false}, {"no path", body(adVersion, 0, 1), false},
		{"too many", body(adVersion, 65, 65), false}, {"an entry is missing", body(adVersion, 2, 1), false}, {"half an entry", body(adVersion, 1, 1)[:9], false},
		{"another version", body(adVersion+1, 1, 1), false},
	} {
		var ad advertisement
		if got := ad.parse(c.body); got != c.good || got && (ad.choice != 1 || ad.number != 9) {
			t.Errorf("%s: %v, %+v", c.name, got, ad)
		}
	}
}

// Of the flows of a full link the large ones are held back, and small ones are not; on a link that
// is not full, none is.
func TestSmallFlowsAreNotHeldBack(t *testing.T) {
	network, p := allOn(t, "vbft:2x1x3@10G/1G", 1)
	paths, err := topology.NewPaths(network)
	if err != nil {
		t.Fatal(err)
	}
	e := newDemandEstimator(network)
	for _, c := range []struct {
		rates [3]topology.Rate // in Mbit/s
		want  []bool
	}{
		{[3]topology.Rate{500, 300, 200}, []bool{true, true, false}},
		{[3]topology.Rate{900, 60, 40}, []bool{true, false, false}},
		{[3]topology.Rate{600, 300, 299}, []bool{true, true, false}},
		{[3]topology.Rate{600, 290, 10}, []bool{true, false, false}},
		{[3]topology.Rate{600, 289, 10}, []bool{false, false, false}},
		{[3]topology.Rate{330, 330, 330}, []bool{true, true, true}},
		{[3]topology.Rate{500, 100, 200}, []bool{false, false, false}},
	} {
		var flows traffic.Matrix
		for k, rate := range c.rates {
			flows = append(flows, traffic.Flow{From: k, To: 3 + k, Rate: rate * topology.Mbps})
		}
		if got := e.held(flows, paths, p); !slices.Equal(got, c.want) {
			t.Errorf("%v Mbit/s: held back %v, want %v", c.rates, got, c.want)
		}
	}
}

// The VIDs are the caller's: a failover sorts a list of its own.
func TestFailoverLeavesTheCallersVIDs(t *testing.T) {
	vids := []transport.VID{30, 10, 20}
	f, err := NewFailover(transport.MAC{2, 0, 0, 0, 0, 1}, FailoverConfig{VIDs: vids})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(vids, []transport.VID{30, 10, 20}) {
		t.Errorf("the caller's are %v now", vids)
	}
	vids[0] = 4000
	if !slices.Equal(f.cfg.VIDs, []transport.VID{10, 20, 30}) {
		t.Errorf("the failover's are %v", f.cfg.VIDs)
	}
}

// A pair has to use another VID in two periods in a row to count as changed from outside: each time
// anew, and in periods since the plan was replaced, if it was. Otherwise the plan stays the same
// one.
func TestExternalChangesLastTwoPeriods(t *testing.T) {
	network, p := allOn(t, "vbft:2x3x2", 1, 2, 3)
	c := newController(t, network, p, ControllerConfig{})
	const replaced, silent transport.VID = 4000, 4001
	pair := plan.Pair{A: 0, B: 2}
	for i, c2 := range []struct {
		used, want transport.VID
	}{
		{2, 1}, {1, 1}, {2, 1}, {several, 1}, {2, 1}, {silent, 1}, {2, 1}, {2, 2}, {2, 2}, // once, and in two that others part
		{3, 2}, {3, 3}, {1, 3}, {1, 1}, // again and again, at once
		{2, 1}, {replaced, 1}, {2, 1}, {2, 2},
	} {
		if c2.used == replaced {
			if err := c.Replace(c.Plan()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		before, used := c.Plan(), map[plan.Pair]transport.VID{pair: c2.used}
		if c2.used == silent {
			used = nil
		}
		c.adopt(monotime.At(time.Duration(i)*time.Second), observation{vids: used})
		if got := c.plan.PairVID(0, 2); got != c2.want {
			t.Errorf("period %d, by VID %d: the plan has VID %d, want %d", i, c2.used, got, c2.want)
		}
		if before.PairVID(0, 2) == c2.want && c.Plan() != before {
			t.Errorf("period %d, by VID %d: another plan that says the same", i, c2.used)
		}
	}
}

// A VID that the plan lacks is none that a pair can be taken to, be it one of the network's: no plan
// could have both. Frames have it for a while once the plan does not any more.
func TestExternalChangesToAVIDThatThePlanLacks(t *testing.T) {
	network, p := allOn(t, "vbft:2x3x2", 1, 2)
	c := newController(t, network, p, ControllerConfig{})
	for k := range 3 {
		c.adopt(monotime.At(time.Duration(k)*time.Second), observation{vids: map[plan.Pair]transport.VID{{A: 0, B: 2}: 3}})
	}
	if c.Plan() != p {
		t.Errorf("the plan has VID %d for it, and lists %v", c.Plan().PairVID(0, 2), c.Plan().VIDs)
	}
}

// Pairs that are changed from outside count all that are, and each by itself: those beside it that
// are where the plan has them, that use several VIDs, or one that nobody knows, are left as they
// are.
func TestExternalChangesOfSomePairs(t *testing.T) {
	network, p := allOn(t, "vbft:2x3x3", 1, 2, 3)
	c := newController(t, network, p, ControllerConfig{})
	used := map[plan.Pair]transport.VID{
		{A: 0, B: 3}: several, {A: 0, B: 4}: 1, {A: 0, B: 5}: 77, {A: 1, B: 3}: 2, {A: 1, B: 4}: several,
		{A: 1, B: 5}: 3, {A: 2, B: 3}: 1, {A: 2, B: 4}: 2,
	}
	for k := range externalPeriods {
		c.adopt(monotime.At(time.Duration(k)*time.Second), observation{vids: used})
		if k == 0 {
			used[plan.Pair{A: 2, B: 5}] = 2 // sorts last, and has used it in one period alone
			used[plan.Pair{A: 0, B: 3}] = 2 // sorts first, likewise
		}
	}
	want := map[plan.Pair]transport.VID{{A: 1, B: 3}: 2, {A: 1, B: 5}: 3, {A: 2, B: 4}: 2}
	if got := c.Plan().Pairs; !maps.Equal(got, want) {
		t.Errorf("pairs %v, want %v", got, want)
	}
	for pair := range used {
		if _, changed := want[pair]; changed != c.rests[pair].until.After(monotime.At(time.Second)) {
			t.Errorf("pair %v: changed from outside %v, rests until %v", pair, changed, c.rests[pair].until)
		}
	}
	log := c.Log(nil)
	if len(log) != len(want) || slices.ContainsFunc(log, func(d Decision) bool { return d.Reason != External }) {
		t.Errorf("log: %v", log)
	}
}

// A plan is worse than another one if its worst link is more than 2 % worse: not if nothing flows,
// nor if both are alike.
func TestIsWorse(t *testing.T) {
	network, err := topology.Parse("vbft:2x2x2")
	if err != nil {
		t.Fatal(err)
	}
	apart := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for i := range network.Hosts {
		node := plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: transport.VID(1 + i%2)}
		apart.Nodes = append(apart.Nodes, node)
	}
	pair := plan.Pair{A: 1, B: 3}
	together := apart.Exchange(map[plan.Pair]transport.VID{pair: 1})
	c := newController(t, network, apart, ControllerConfig{})
	flows := func(first, second topology.Rate) traffic.Matrix {
		return traffic.Matrix{{From: 0, To: 2, Rate: first * topology.Mbps}, {From: 1, To: 3, Rate: second * topology.Mbps}}
	}
	for _, c2 := range []struct {
		demand traffic.Matrix
		want   bool
	}{{nil, false}, {flows(0, 0), false}, {flows(500, 0), false}, {flows(500, 9), false}, {flows(500, 11), true}, {flows(500, 500), true}} {
		if got := c.isWorse(c2.demand, together, apart); got != c2.want {
			t.Errorf("%v: worse %v, want %v", c2.demand, got, c2.want)
		}
		if c.isWorse(c2.demand, apart, together) || c.isWorse(c2.demand, apart, apart) {
			t.Errorf("%v: the better one is worse", c2.demand)
		}
	}
}

// Changes that made it worse are reverted, but one of a pair that was changed from outside since:
// it stays where it is, in the plan, and in the one that is compared with.
func TestEvaluate_LeavesExternalChanges(t *testing.T) {
	network, err := topology.Parse("vbft:2x3x3")
	if err != nil {
		t.Fatal(err)
	}
	busy := plan.Pair{A: 0, B: 5} // has VID 2, and began to talk after the changes to VID 2
	before := &plan.Plan{VIDs: []transport.VID{1, 2, 3}, Pairs: map[plan.Pair]transport.VID{busy: 2}}
	for i := range network.Hosts {
		before.Nodes = append(before.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: 1})
	}
	pairs := []plan.Pair{{A: 0, B: 3}, {A: 1, B: 4}, {A: 2, B: 5}}
	for outside, pair := range pairs {
		c := newController(t, network, before, ControllerConfig{})
		c.before = before
		changed := make(map[plan.Pair]transport.VID)
		demand := traffic.Matrix{{From: busy.A, To: busy.B, Rate: 300 * topology.Mbps}}
		for _, p := range pairs {
			c.trial = append(c.trial, Decision{Change: plan.Change{Pair: p, From: 1, To: 2}})
			changed[p] = 2
			demand = append(demand, traffic.Flow{From: p.A, To: p.B, Rate: 100 * topology.Mbps})
		}
		c.plan = before.Exchange(changed)
		for range externalPeriods {
			c.adopt(monotime.At(0), observation{vids: map[plan.Pair]transport.VID{pair: 3}})
		}
		if got := c.before.Pairs; !maps.Equal(got, map[plan.Pair]transport.VID{busy: 2, pair: 3}) {
			t.Errorf("pair %v: compared with a plan with %v", pair, got)
		}
		now := monotime.At(time.Second)
		back := c.evaluate(now, demand.Normalise())
		var want []plan.Change
		for i, p := range pairs {
			if i != outside {
				want = append(want, plan.Change{Pair: p, From: 2, To: 1})
			}
		}
		var got []plan.Change
		for _, d := range back {
			got = append(got, d.Change)
			if d.Reason != Revert || d.At != now {
				t.Errorf("%v: %v at %v", d, d.Reason, d.At)
			}
			if rests := c.rests[d.Change.Pair]; rests.until != now.Add(c.cfg.FlapDamping) {
				t.Errorf("%v: the pair rests until %v, want %v later", d, rests.until, c.cfg.FlapDamping)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pair %v is changed from outside: %v, want %v", pair, got, want)
		}
		if vid := c.Plan().PairVID(pair.A, pair.B); vid != 3 {
			t.Errorf("pair %v has VID %d, want 3, as somebody else wants", pair, vid)
		}
	}
}

// A period ends at the deadline, and not before; the next one is as long, from when it was ended
// on.
func TestPeriods(t *testing.T) {
	network, err := topology.Parse("flat:2")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{VIDs: []transport.VID{1}, Nodes: []plan.Node{{MAC: transport.MAC{2}, VID: 1}, {MAC: transport.MAC{4}, VID: 1}}}
	c, err := NewController(monotime.At(time.Hour), network, p, ControllerConfig{Period: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	due := monotime.At(time.Hour + time.Minute)
	for _, step := range []struct {
		now, due monotime.Time
	}{{due.Add(-1), due}, {due, due.Add(time.Minute)}, {due.Add(150 * time.Second), due.Add(210 * time.Second)}} {
		c.Advance(step.now, nil)
		if at, ok := c.Deadline(); !ok || at != step.due {
			t.Errorf("at %v: due at %v, %v; want %v", step.now, at, ok, step.due)
		}
	}
}

// A flow is forgotten when it is on average less than a millionth of its sender's cable.
func TestFaintFlowsAreForgotten(t *testing.T) {
	network, p := allOn(t, "flat:3", 1)
	c := newController(t, network, p, ControllerConfig{Weight: 0.25, Hysteresis: 2})
	least := network.Hosts[0].Rate / 1_000_000
	faint, clear := traffic.Flow{From: 0, To: 1, Rate: 4*least - 4}, traffic.Flow{From: 0, To: 2, Rate: 4 * least}
	c.remember(traffic.Matrix{{From: 0, To: 1, Rate: least - 1}, {From: 0, To: 2, Rate: least}})
	if want := (traffic.Matrix{{From: 0, To: 2, Rate: least}}); !slices.Equal(c.mean, want) {
		t.Errorf("in the first period: average %v, want %v", c.mean, want)
	}
	c.past, c.mean = nil, nil
	c.remember(nil)
	c.remember(traffic.Matrix{faint, clear})
	if want := (traffic.Matrix{{From: 0, To: 2, Rate: least}}); !slices.Equal(c.mean, want) {
		t.Errorf("average %v, want %v", c.mean, want)
	}
	c.remember(traffic.Matrix{{From: 0, To: 2, Rate: 5 * least}, {From: 1, To: 0, Rate: 8 * least}})
	want := traffic.Matrix{{From: 0, To: 2, Rate: 2 * least}, {From: 1, To: 0, Rate: 2 * least}}
	if !slices.Equal(c.mean, want) || len(c.past) != 2 || len(c.past[0]) != 2 || c.past[0][0] != faint {
		t.Errorf("average %v, want %v; past %v", c.mean, want, c.past)
	}
}

// A pair is left alone while it rests, or the counters of one of its nodes are missing.
func TestKeep(t *testing.T) {
	now := monotime.At(time.Hour)
	c := &Controller{rests: make(map[plan.Pair]rest), meter: meter{nodes: make([]nodeMeter, 6)}}
	for i := range c.meter.nodes[:5] {
		c.meter.nodes[i].last = &reading{}
	}
	c.meter.nodes[4].missing = true
	c.rests[plan.Pair{A: 0, B: 2}] = rest{until: now.Add(1)}
	c.rests[plan.Pair{A: 0, B: 3}] = rest{until: now}
	keep := c.keep(now)
	for pair, want := range map[plan.Pair]bool{
		{A: 0, B: 1}: false, {A: 0, B: 2}: true, {A: 0, B: 3}: false, {A: 0, B: 4}: true, {A: 3, B: 4}: true,
		{A: 4, B: 5}: true, {A: 1, B: 5}: true,
	} {
		if got := keep(pair); got != want {
			t.Errorf("pair %v: kept %v, want %v", pair, got, want)
		}
	}
}
