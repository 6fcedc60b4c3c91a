package optimize_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/vlan/internal/vlantest"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/optimize"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

func TestVFREC_2_4_CGHasATableWithoutCollisions(t *testing.T) {
	topology := vlantest.Network(t, "vbft:4x4x4")
	_, r, err := optimize.Plan(topology, vlantest.Pattern(t, "cg16", 16), nil, optimize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	for _, l := range r.Before.Collisions() {
		if !l.Hop.Back {
			before = append(before, fmt.Sprint(topology.HopName(l.Hop), l.Pairs))
		}
	}
	if got, want := fmt.Sprint(before), "[leaf3>top3[3-12 7-13 11-14] leaf2>top2[2-8 6-9]]"; got != want {
		t.Errorf("at first %s collide, want %s", got, want)
	}
	if after := r.After.Collisions(); len(after) > 0 {
		t.Errorf("after: %v, want no collision", after)
	}
	if r.After.Worst != 1 || r.LowerBound != 1 || r.Stopped != optimize.Optimal || len(r.Changes) != 3 {
		t.Errorf("worst link %v (bound %v, %v), %d changes; want 1 (1, proved), 3", r.After.Worst, r.LowerBound, r.Stopped, len(r.Changes))
	}
}

// matching is n/2 pairs by chance that talk both ways.
func matching(n int, seed uint64) (demand traffic.Matrix) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(n)
	for i := 0; i+1 < n; i += 2 {
		a, b := order[i], order[i+1]
		demand = append(demand, traffic.Flow{From: a, To: b, Rate: topology.Gbps}, traffic.Flow{From: b, To: a, Rate: topology.Gbps})
	}
	return demand.Normalise()
}

// What holds of every answer: it is as good as the report says by way of Load, not worse than what
// was there, within its limits, and the same when asked again.
func TestOptimizeKeepsItsPromises(t *testing.T) {
	for _, seed := range vlantest.Seeds(300) {
		top, demand := smallCase(rand.New(rand.NewPCG(seed, 3)))
		from := vlantest.RandomPlan(top, seed)
		opt := optimize.Options{MaxChanges: int(seed % 4), Effort: 5000}
		if seed%2 == 0 {
			opt.Keep = func(p plan.Pair) bool { return p.A%2 == 0 }
		}
		if seed%3 == 0 {
			opt.Avoid = func(p plan.Pair, vid transport.VID) bool { return (p.A+p.B+int(vid))%2 == 0 }
		}
		plan, r, err := optimize.Plan(top, demand, from, opt)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		before, after := judge(t, top, demand, from, from), judge(t, top, demand, from, plan)
		if before.less(after) {
			t.Errorf("seed %d: %+v became %+v", seed, before, after)
		}
		if math.Abs(after.worst-r.After.Worst) > 1e-9 || math.Abs(before.worst-r.Before.Worst) > 1e-9 || after.changed != len(r.Changes) || r.LowerBound > after.worst*(1+1e-9) {
			t.Errorf("seed %d: %+v became %+v, and the report says %v, %v (bound %v), %d changes", seed, before, after, r.Before.Worst, r.After.Worst, r.LowerBound, len(r.Changes))
		}
		if opt.MaxChanges > 0 && after.changed > opt.MaxChanges {
			t.Errorf("seed %d: %d changes, want %d at most", seed, after.changed, opt.MaxChanges)
		}
		checkChanges(t, seed, from, plan, demand, opt.Keep)
		for _, c := range r.Changes {
			if opt.Avoid != nil && opt.Avoid(c.Pair, c.To) {
				t.Errorf("seed %d: %v, which was to be avoided", seed, c)
			}
		}
		again, _, _ := optimize.Plan(top, demand, from, opt)
		if !reflect.DeepEqual(plan, again) {
			t.Errorf("seed %d: another plan when asked again", seed)
		}
	}
}

// checkChanges makes sure that only pairs that talk and may change have changed, and that no
// exception says what the rule says.
func checkChanges(t *testing.T, seed uint64, from, pl *plan.Plan, demand traffic.Matrix, keep func(plan.Pair) bool) {
	t.Helper()
	rule := *pl
	rule.Pairs = nil
	talk := demand.Pairs()
	for b := range pl.Nodes {
		for a := range b {
			p := plan.Pair{A: a, B: b}
			changed := pl.PairVID(a, b) != from.PairVID(a, b)
			if changed && (!slices.Contains(talk, p) || keep != nil && keep(p)) {
				t.Errorf("seed %d: pair %v changed, and should not", seed, p)
			}
			if vid, listed := pl.Pairs[p]; listed && vid == rule.PairVID(a, b) {
				t.Errorf("seed %d: pair %v is listed with the VID of its rule", seed, p)
			}
		}
	}
}

// Patterns for which the best is known: no pair shares a link, or as many as must.
func TestOptimizeReachesTheBoundOnLargeNetworks(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   string
		demand func(n int) traffic.Matrix
		worst  float64
	}{
		{"CG", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.Pattern(t, "cg", n) }, 1},
		{"a permutation, one way", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.Pattern(t, "random:1", n) }, 1},
		{"a matching, both ways", "vbft:32x32x32", func(n int) traffic.Matrix { return matching(n, 1) }, 1},
		{"a permutation, 2 hosts for each top", "vbft:16x8x16", func(n int) traffic.Matrix { return vlantest.Pattern(t, "random:3", n) }, 2},
		{"all to all", "vbft:16x8x16", func(n int) traffic.Matrix { return vlantest.Pattern(t, "all", n) }, 240.0 * 2 / 255},
		{"three levels, a permutation", "vbft3:8x8x8x8x8", func(n int) traffic.Matrix { return vlantest.Pattern(t, "random:1", n) }, 1},
		{"three levels, CG", "vbft3:8x8x8x8x8", func(n int) traffic.Matrix { return vlantest.Pattern(t, "cg", n) }, 1},
		{"three levels, 2 hosts for each middle switch", "vbft3:8x16x8x8x8", func(n int) traffic.Matrix { return vlantest.Pattern(t, "random:1", n) }, 2},
	} {
		top := vlantest.Network(t, c.spec)
		_, r, err := optimize.Plan(top, c.demand(len(top.Hosts)), nil, optimize.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if math.Abs(r.After.Worst-c.worst) > 1e-9 || math.Abs(r.LowerBound-c.worst) > 1e-9 || r.Stopped != optimize.AtBound {
			t.Errorf("%s: worst link %v, bound %v, %v; want %v, at the bound", c.name, r.After.Worst, r.LowerBound, r.Stopped, c.worst)
		}
	}
}

// One way, the n equal pairs of a leaf share k VIDs evenly: at most ⌈n/k⌉ have one (König). On three
// levels the search has to go from the hosts inwards for that.
func TestOptimizeSpreadsPermutationsEvenly(t *testing.T) {
	for spec, most := range map[string]float64{"vbft:8x8x8": 1, "vbft:16x5x16": 4, "vbft:16x8x16": 2, "vbft:16x16x16": 1, "vbft3:4x4x4x4x4": 1, "vbft3:6x6x6x6x6": 1} {
		top := vlantest.Network(t, spec)
		for _, seed := range vlantest.Seeds(20) {
			demand := vlantest.Pattern(t, fmt.Sprint("random:", seed), len(top.Hosts))
			_, r, err := optimize.Plan(top, demand, nil, optimize.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.After.Worst > most || r.Stopped > optimize.AtBound {
				t.Errorf("%s, permutation %d: worst link %v, %v; want %v at most, at the bound", spec, seed, r.After.Worst, r.Stopped, most)
			}
		}
	}
}

// 20,000 flows of all sizes come to a hundredth of the bound.
func TestOptimizeComesCloseToTheBound(t *testing.T) {
	for _, spec := range []string{"vbft:32x32x32", "vbft:8x8x8", "vbft3:8x8x4x4x8"} {
		if testing.Short() && spec != "vbft:8x8x8" {
			continue
		}
		top := vlantest.Network(t, spec)
		for _, perChange := range []float64{0, 0.1} {
			_, r, err := optimize.Plan(top, vlantest.RandomTraffic(len(top.Hosts), 20*len(top.Hosts), 1), nil, optimize.Options{PerChange: perChange})
			if err != nil {
				t.Fatal(err)
			}
			if r.After.Worst > r.LowerBound*1.01 {
				t.Errorf("%s: worst link %v, bound %v: want 1%% above at most", spec, r.After.Worst, r.LowerBound)
			}
			t.Logf("%s, PerChange %v: worst link %.3f -> %.3f (bound %.3f), squares %.0f -> %.0f, %d changes", spec, perChange, r.Before.Worst, r.After.Worst, r.LowerBound, r.Before.Squares, r.After.Squares, len(r.Changes))
		}
	}
}

// A plan that is good stays as it is, and a small disturbance of it is mended with few changes.
func TestOptimizeChangesLittle(t *testing.T) {
	top := vlantest.Network(t, "vbft:32x32x32")
	demand := vlantest.Pattern(t, "random:1", len(top.Hosts))
	good, _, err := optimize.Plan(top, demand, vlantest.RandomPlan(top, 1), optimize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, r, _ := optimize.Plan(top, demand, good, optimize.Options{}); len(r.Changes) != 0 {
		t.Errorf("%d changes to a plan that was just made, want 0", len(r.Changes))
	}
	crosses := func(f traffic.Flow) bool { return top.Hosts[f.From].Switch != top.Hosts[f.To].Switch }
	moved := demand[slices.IndexFunc(demand, crosses)]
	disturbed, err := good.With(map[plan.Pair]transport.VID{
		plan.PairOf(moved.From, moved.To): good.PairVID(moved.From, moved.To)%32 + 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := optimize.Plan(top, demand, disturbed, optimize.Options{})
	if err != nil || r.Before.Worst != 2 || r.After.Worst != 1 || len(r.Changes) > 3 {
		t.Errorf("after one pair was moved: worst link %v -> %v, %d changes, %v; want 2 -> 1 and 3 at most", r.Before.Worst, r.After.Worst, len(r.Changes), err)
	}
}

// Whoever asks for any gain, an infinite one too, gets the plan of one that no pair can bring.
func TestOptimizeTakesAnyPerChange(t *testing.T) {
	network := vlantest.Must(topology.Parse("vbft:8x4x8"))
	for seed := range 8 {
		demand := vlantest.Must(traffic.Pattern(fmt.Sprintf("random:%d", seed), 64))
		var changes []plan.Change
		for i, perChange := range []float64{1e6, math.MaxFloat64, math.Inf(1)} {
			_, r, err := optimize.Plan(network, demand, nil, optimize.Options{PerChange: perChange})
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				changes = r.Changes
			} else if !slices.Equal(r.Changes, changes) {
				t.Errorf("random:%d, PerChange %g: %d changes, want the %d of 1e6", seed, perChange, len(r.Changes), len(changes))
			}
		}
	}
}

// A cable is gone: its VID does not connect some pairs, and they get another.
func TestOptimizeAvoidsAVLANThatIsCut(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x4")
	top.VLANs[2].Links = slices.DeleteFunc(slices.Clone(top.VLANs[2].Links), func(l int) bool { return top.LinkName(l) == "leaf2-top2" })
	pl, r, err := optimize.Plan(top, vlantest.Pattern(t, "cg16", 16), nil, optimize.Options{MaxChanges: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []plan.Pair{{A: 2, B: 8}, {A: 6, B: 9}} {
		if pl.PairVID(p.A, p.B) == 3 {
			t.Errorf("pair %v uses VID 3, which leaf2 has lost", p)
		}
	}
	if r.After.Worst != 1 {
		t.Errorf("worst link %v, want 1: three VIDs are enough", r.After.Worst)
	}
	// Without a gain these pairs alone change, and nothing is said to be the best.
	pl, r, err = optimize.Plan(top, vlantest.Pattern(t, "cg16", 16), nil, optimize.Options{MinGain: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Changes {
		if c.From != 3 || c.Pair != (plan.Pair{A: 2, B: 8}) && c.Pair != (plan.Pair{A: 6, B: 9}) {
			t.Errorf("with too little to gain: %v", c)
		}
	}
	if len(r.Changes) != 2 || r.Stopped != optimize.GainTooSmall || pl.PairVID(2, 8) == 3 || pl.PairVID(6, 9) == 3 {
		t.Errorf("with too little to gain: %v, %v; want 2-8 and 6-9 to change", r.Changes, r.Stopped)
	}
	for i := range top.VLANs {
		top.VLANs[i].Links = top.VLANs[2].Links[:3]
	}
	if _, _, err := optimize.Plan(top, vlantest.Pattern(t, "cg16", 16), nil, optimize.Options{}); !errors.Is(err, topology.ErrNoPath) {
		t.Errorf("leaf2 is cut off: %v, want ErrNoPath", err)
	}
}

func TestOptimizeNamesBadInput(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x4")
	demand := vlantest.Pattern(t, "cg16", 16)
	few := vlantest.RandomPlan(vlantest.Network(t, "vbft:2x4x4"), 1)
	otherVIDs := vlantest.RandomPlan(top, 1)
	otherVIDs.VIDs = []transport.VID{77}
	for _, c := range []struct {
		name   string
		top    *topology.Topology
		demand traffic.Matrix
		plan   *plan.Plan
		want   error
	}{
		{"no switch", &topology.Topology{}, demand, nil, topology.ErrInvalid},
		{"unknown node", top, traffic.Matrix{{From: 0, To: 16, Rate: 1}}, nil, traffic.ErrInvalid},
		{"endless rate", top, traffic.Matrix{{From: 0, To: 5, Rate: topology.Rate(math.Inf(1))}}, nil, traffic.ErrInvalid},
		{"rates without a sum", top, traffic.Matrix{{From: 0, To: 4, Rate: math.MaxFloat64}, {From: 1, To: 5, Rate: math.MaxFloat64}, {From: 2, To: 6, Rate: 1e9}}, nil, traffic.ErrInvalid},
		{"a rate whose utilisation has no square", top, traffic.Matrix{{From: 0, To: 4, Rate: 1e200}}, nil, traffic.ErrInvalid},
		{"a rate without a unit", top, traffic.Matrix{{From: 0, To: 4, Rate: math.SmallestNonzeroFloat64}}, nil, traffic.ErrInvalid},
		{"plan of fewer nodes", top, demand, few, plan.ErrInvalid},
		{"plan without a VID of the topology", top, demand, otherVIDs, plan.ErrInvalid},
	} {
		if plan, _, err := optimize.Plan(c.top, c.demand, c.plan, optimize.Options{}); plan != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestOptimizeWithNothingToDo(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x4")
	for name, demand := range map[string]traffic.Matrix{"no traffic": nil, "traffic inside a leaf": {{From: 0, To: 1, Rate: topology.Gbps}}} {
		_, r, err := optimize.Plan(top, demand, nil, optimize.Options{})
		if err != nil || r.After.Worst != 0 || len(r.Changes) != 0 || r.Stopped != optimize.Optimal {
			t.Errorf("%s: %v, worst link %v, %d changes, %v", name, err, r.After.Worst, len(r.Changes), r.Stopped)
		}
	}
}

// One core and 1,024 nodes: a permutation, CG, and 20,000 flows of all sizes.
func BenchmarkOptimize(b *testing.B) {
	for _, c := range []struct {
		name, spec string
		demand     func(n int) traffic.Matrix
	}{
		{"permutation", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.Pattern(b, "random:1", n) }},
		{"cg", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.Pattern(b, "cg", n) }},
		{"all", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.Pattern(b, "all", n) }},
		{"20000flows", "vbft:32x32x32", func(n int) traffic.Matrix { return vlantest.RandomTraffic(n, 20_000, 1) }},
		{"threelevels", "vbft3:8x16x8x8x8", func(n int) traffic.Matrix { return vlantest.Pattern(b, "random:1", n) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			top := vlantest.Network(b, c.spec)
			demand := c.demand(len(top.Hosts))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := optimize.Plan(top, demand, nil, optimize.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Changes come in ascending order, also of pairs of which the higher node alone sends.
func TestOptimizeReportsChangesInOrder(t *testing.T) {
	top := vlantest.Network(t, "vbft:4x4x4")
	demand := vlantest.RandomTraffic(len(top.Hosts), 100, 5)
	demand = slices.DeleteFunc(demand, func(f traffic.Flow) bool { return (f.From < f.To) == ((f.From+f.To)%2 == 0) })
	_, report, err := optimize.Plan(top, demand, nil, optimize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	byPair := func(a, b plan.Change) int { return a.Pair.Compare(b.Pair) }
	if len(report.Changes) < 5 || !slices.IsSortedFunc(report.Changes, byPair) {
		t.Errorf("changes %v", report.Changes)
	}
}

// On a long ring, where each link is missing in one VLAN, there are more cuts and longer paths than
// a search has the time or the memory to look at.
func TestOptimizeBoundsItsLooksAtLongRings(t *testing.T) {
	const switches = 400
	ring := &topology.Topology{}
	for i := range switches {
		ring.Switches = append(ring.Switches, fmt.Sprint("s", i))
		ring.Hosts = append(ring.Hosts, topology.Host{Name: fmt.Sprint("h", i), Switch: i, Rate: topology.Gbps})
		ring.Links = append(ring.Links, topology.Link{A: i, B: (i + 1) % switches, Rate: topology.Gbps})
		v := topology.VLAN{VID: transport.VID(i + 1)}
		for l := range switches {
			if l != i {
				v.Links = append(v.Links, l)
			}
		}
		ring.VLANs = append(ring.VLANs, v)
	}
	demand := vlantest.RandomTraffic(switches, 10, 1)
	views, cuts, err := optimize.Looks(ring, demand)
	if err != nil {
		t.Fatal(err)
	}
	if work := cuts * switches; views > 8 || cuts < switches || work > 1<<24 {
		t.Errorf("%d views, %d cuts of %d links; want 8 views, and 2^24 links in all cuts at most", views, cuts, switches)
	}
}

// What a proof tries that is not completed, a sixteenth of the effort, is in the report, beside what
// the search tries that goes on without it.
func TestOptimizeCountsTheProof(t *testing.T) {
	const effort = 2000
	tested := 0
	for seed := range uint64(200) {
		top, demand := smallCase(rand.New(rand.NewPCG(seed, 3)))
		from, opt := vlantest.RandomPlan(top, seed), optimize.Options{Effort: effort}
		_, r, err := optimize.Plan(top, demand, from, opt)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, fast, err := optimize.PlanFast(top, demand, from, opt)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r.Stopped == optimize.Optimal {
			continue
		}
		tested++
		if proof := r.Tried - fast.Tried; proof < effort/16 || proof > effort/10 {
			t.Errorf("seed %d: %d paths were tried, %d without a proof, at an effort of %d", seed, r.Tried, fast.Tried, effort)
		}
	}
	if tested == 0 {
		t.Error("all were proved")
	}
}

// A plan whose changes can only be made together costs a second search, for one of few changes: the
// report has both, each as long as Options.Effort says. Which changes come first costs a look at
// the path before and after each.
func TestOptimizeCountsBothSearches(t *testing.T) {
	const effort = 2000
	twice := 0
	for seed := range uint64(600) {
		top, demand := smallCase(rand.New(rand.NewPCG(seed, 3)))
		from := vlantest.RandomPlan(top, seed)
		_, once, err := optimize.Plan(top, demand, from, optimize.Options{Effort: effort})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, r, err := optimize.Plan(top, demand, from, optimize.Options{Effort: effort, Batch: 1})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		least := 0
		if len(r.Changes) < len(once.Changes) {
			least = 2 * (len(once.Changes) - len(r.Changes) + 1)
		}
		if more := r.Tried - once.Tried; more < least || more > effort+effort/10 {
			t.Errorf("seed %d: %d paths were tried, %d without Batch, at an effort of %d", seed, r.Tried, once.Tried, effort)
		}
		if r.Tried-once.Tried > effort/2 {
			twice++
		}
	}
	if twice == 0 {
		t.Error("no plan took a second search")
	}
}

// Pairs that must change come before the changes of a batch, and on top of them: none of these
// makes the worst link worse than it is then, and one that relieves it comes first. A plan whose
// other changes fit in a batch is the one without Batch.
func TestOptimizeConnectsBeforeABatch(t *testing.T) {
	batches := 0
	for _, seed := range vlantest.Seeds(400) {
		top, demand := smallCase(rand.New(rand.NewPCG(seed, 4)))
		top.VLANs[0].Links = top.VLANs[0].Links[:len(top.VLANs[0].Links)/2]
		from := vlantest.RandomPlan(top, seed)
		whole, once, err := optimize.Plan(top, demand, from, optimize.Options{Effort: 2000})
		if errors.Is(err, topology.ErrNoPath) {
			continue
		}
		got, r, err := optimize.Plan(top, demand, from, optimize.Options{Effort: 2000, Batch: 1})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		paths := vlantest.Must(topology.NewPaths(top))
		must := make(map[plan.Pair]transport.VID)
		for _, p := range demand.Pairs() {
			if !paths.Connects(p.A, p.B, from.PairVID(p.A, p.B)) {
				must[p] = got.PairVID(p.A, p.B)
			}
		}
		if len(must) == 0 {
			continue
		}
		batches++
		alone := judge(t, top, demand, from, from.Exchange(must))
		if r.After.Worst > alone.worst*(1+1e-9) || len(r.Changes) > len(must)+1 {
			t.Errorf("seed %d: worst link %v with %d changes, and %v with the %d that must be",
				seed, r.After.Worst, len(r.Changes), alone.worst, len(must))
		}
		if len(once.Changes) <= len(must)+1 && (!reflect.DeepEqual(got, whole) || r.Stopped != once.Stopped) {
			t.Errorf("seed %d: %d changes, %v; want all %d, %v", seed, len(r.Changes), r.Stopped, len(once.Changes), once.Stopped)
		}
	}
	if batches < 20 {
		t.Errorf("%d plans had pairs that must change, want 20 at least", batches)
	}
}
