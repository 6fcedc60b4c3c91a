package plan_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"

	"github.com/rawlane/rawlane/vlan/internal/strictyaml"
	"github.com/rawlane/rawlane/vlan/plan"
)

func stations(n int) (macs []transport.MAC) {
	for i := range n {
		macs = append(macs, station(i+1))
	}
	return macs
}

func roundRobin(t testing.TB, n int, vids ...transport.VID) *plan.Plan {
	t.Helper()
	p, err := plan.RoundRobin(stations(n), vids)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// randomPlan has random defaults, priorities and exceptions.
func randomPlan(t testing.TB, rng *rand.Rand, n int) *plan.Plan {
	t.Helper()
	p := roundRobin(t, n, 10, 20, 30, 40, 50)
	p.PCP = transport.PCP(rng.IntN(8))
	p.Pairs = make(map[plan.Pair]transport.VID)
	for i := range p.Nodes {
		s := &p.Nodes[i]
		s.VID, s.Priority = p.VIDs[rng.IntN(5)], rng.IntN(5)-2
		if rng.IntN(2) == 0 {
			s.Name = fmt.Sprintf("node-%d", i)
		}
		for b := range rng.IntN(i + 1) {
			p.Pairs[plan.PairOf(i, b)] = p.VIDs[rng.IntN(5)]
		}
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

// The paper's table before it is optimised, for 16 nodes and VIDs 1 to 4 in turn. Source: VFREC
// §2.4, figure 4.
func TestVFREC_2_4_Figure4_VIDsBeforeOptimisation(t *testing.T) {
	p := roundRobin(t, 16, 1, 2, 3, 4)
	for pair, want := range map[plan.Pair]transport.VID{{1, 4}: 2, {2, 8}: 3, {3, 12}: 4, {6, 9}: 3, {7, 13}: 4, {11, 14}: 4} {
		if got := p.PairVID(pair.B, pair.A); got != want {
			t.Errorf("pair %v: VID %d, want %d", pair, got, want)
		}
	}
}

// As many descriptions as there are nodes set the VIDs of all pairs, and share them among the VIDs:
// nearly equally, as the lower node of a pair is one of a low number more often.
func TestVFREC_2_3_RoundRobinSharesThePairs(t *testing.T) {
	share := make(map[transport.VID]int)
	p := roundRobin(t, 16, 1, 2, 3, 4)
	for b := range 16 {
		for a := range b {
			share[p.PairVID(a, b)]++
		}
	}
	// VID v is that of the pairs in which nodes v-1, v+3, v+7, v+11 are the lower ones.
	want := map[transport.VID]int{1: 15 + 11 + 7 + 3, 2: 14 + 10 + 6 + 2, 3: 13 + 9 + 5 + 1, 4: 12 + 8 + 4 + 0}
	if !maps.Equal(share, want) {
		t.Errorf("pairs per VID %v, want %v", share, want)
	}
}

// In every plan of up to 64 nodes, whatever its priorities and exceptions: the two ends of each
// pair have routes with one VID, which is the exception or the default of that node which has
// priority; and the three ways to ask agree.
func TestPlan_BothEndsUseOneVID(t *testing.T) {
	for n := 1; n <= 64; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 0))
		p := randomPlan(t, rng, n)
		tables := make([]*vlan.Table, n)
		for i := range tables {
			tables[i] = newTable(t, p.Routes(i)...)
			if got := len(tables[i].Routes()); got != n {
				t.Fatalf("n=%d: node %d has %d routes, want one to each other and the default", n, i, got)
			}
		}
		for a := range n {
			for b := range n {
				if a == b {
					continue
				}
				low, high := p.Nodes[min(a, b)], p.Nodes[max(a, b)]
				want, listed := p.Pairs[plan.PairOf(a, b)]
				if !listed {
					if want = low.VID; high.Priority > low.Priority {
						want = high.VID
					}
				}
				got := tables[a].Route(p.Nodes[b].MAC)
				tag, tagged := got.Tag, got.Tagged
				vid, err := p.VID(p.Nodes[a].MAC, p.Nodes[b].MAC)
				if !tagged || tag != (transport.Tag{VID: want, PCP: p.PCP}) || p.PairVID(a, b) != want || vid != want || err != nil {
					t.Errorf("n=%d, %d to %d: route %v, PairVID %d, VID %d, %v; want VID %d PCP %d", n, a, b, tag, p.PairVID(a, b), vid, err, want, p.PCP)
				}
			}
		}
	}
}

// "To communicate with a node that is not listed, the default VID is used." Source: VFREC §2.3.
func TestPlan_UnlistedNodesAreReachedByTheSendersDefault(t *testing.T) {
	p := roundRobin(t, 4, 1, 2, 3)
	p.Pairs = map[plan.Pair]transport.VID{{A: 1, B: 2}: 3}
	stranger, group := transport.MAC{0x02, 9}, transport.MAC{0x03, 9}
	table := newTable(t, p.Routes(1)...)
	for name, to := range map[string]transport.MAC{"a stranger": stranger, "a group": group, "all": transport.Broadcast} {
		got := table.Route(to)
		tag, tagged := got.Tag, got.Tagged
		vid, err := p.VID(station(2), to)
		back, errBack := p.VID(to, station(2))
		if !tagged || tag.VID != 2 || vid != 2 || back != 2 || err != nil || errBack != nil {
			t.Errorf("to %s: route %v, VID %d %v, back %d %v; want VID 2", name, tag, vid, err, back, errBack)
		}
	}
	if _, err := p.VID(stranger, group); !errors.Is(err, plan.ErrUnknownNode) {
		t.Errorf("between strangers: %v, want ErrUnknownNode", err)
	}
	if _, err := p.VID(station(1), station(1)); err == nil || !strings.Contains(err.Error(), "want two nodes") {
		t.Errorf("to itself: %v", err)
	}
}

// One node of a plan says all that is wrong with it, and so does the plan with all of them.
func TestPlan_ValidateNamesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*plan.Plan)
		want  string
	}{
		"no VID":                      {func(p *plan.Plan) { p.VIDs = nil }, "0 vids: want 1 to 1024"},
		"VID 0":                       {func(p *plan.Plan) { p.VIDs[1] = 0 }, "vid 0: want 1 to 4094"},
		"VID 4095":                    {func(p *plan.Plan) { p.VIDs[1] = 4095 }, "vid 4095: want 1 to 4094"},
		"a VID twice":                 {func(p *plan.Plan) { p.VIDs[1] = 1 }, "vid 1: given twice"},
		"PCP":                         {func(p *plan.Plan) { p.PCP = 8 }, "pcp 8: want 0 to 7"},
		"no node":                     {func(p *plan.Plan) { p.Nodes = nil }, "0 nodes: want 1 to 4096"},
		"too many nodes":              {func(p *plan.Plan) { p.Nodes = make([]plan.Node, 5000) }, "5000 nodes: want 1 to 4096"},
		"two nodes with one MAC":      {func(p *plan.Plan) { p.Nodes[3].MAC = station(1) }, "node 3: mac 02:00:00:00:00:01: is node 0's, too"},
		"zero MAC":                    {func(p *plan.Plan) { p.Nodes[3].MAC = transport.MAC{} }, "node 3: mac 00:00:00:00:00:00: no station's address"},
		"a group's MAC":               {func(p *plan.Plan) { p.Nodes[3].MAC = transport.Broadcast }, "no station's address (want a unicast MAC)"},
		"two nodes with one name":     {func(p *plan.Plan) { p.Nodes[0].Name, p.Nodes[3].Name = "x", "x" }, `node 3: name "x": is node 0's, too`},
		"a name like a number":        {func(p *plan.Plan) { p.Nodes[3].Name = "17" }, `node 3: name "17": want at most 255 letters`},
		"a name with a line break":    {func(p *plan.Plan) { p.Nodes[3].Name = "a\nb" }, `name "a\nb": want`},
		"a long name":                 {func(p *plan.Plan) { p.Nodes[3].Name = strings.Repeat("a", 256) }, "want at most 255 letters"},
		"default VID 0":               {func(p *plan.Plan) { p.Nodes[2].VID = 0 }, "node 2: vid 0: want 1 to 4094"},
		"default 4095":                {func(p *plan.Plan) { p.Nodes[2].VID = 4095 }, "node 2: vid 4095: want 1 to 4094"},
		"a default that is not used":  {func(p *plan.Plan) { p.Nodes[2].VID = 9 }, "node 2: vid 9: not among the plan's vids"},
		"priority":                    {func(p *plan.Plan) { p.Nodes[2].Priority = -1_000_001 }, "node 2: priority -1000001: want -1000000 to 1000000"},
		"a pair of one node":          {func(p *plan.Plan) { p.Pairs[plan.Pair{A: 2, B: 2}] = 1 }, "pair 2-2: want two nodes of 0 to 7"},
		"a pair the wrong way round":  {func(p *plan.Plan) { p.Pairs[plan.Pair{A: 3, B: 2}] = 1 }, "pair 3-2: want two nodes of 0 to 7, the lower one first"},
		"a pair of an unknown node":   {func(p *plan.Plan) { p.Pairs[plan.Pair{A: 2, B: 8}] = 1 }, "pair 2-8: want two nodes of 0 to 7"},
		"a pair of a negative one":    {func(p *plan.Plan) { p.Pairs[plan.Pair{A: -1, B: 3}] = 1 }, "pair -1-3: want two nodes"},
		"a pair's VID 0":              {func(p *plan.Plan) { p.Pairs[plan.Pair{A: 1, B: 2}] = 0 }, "pair 1-2: vid 0: want 1 to 4094"},
		"a pair's VID is not used":    {func(p *plan.Plan) { p.Pairs[plan.Pair{A: 1, B: 2}] = 9 }, "pair 1-2: vid 9: not among the plan's vids"},
		"a topology on two lines":     {func(p *plan.Plan) { p.Topology = "a\nb" }, "topology: want at most 255 bytes of text on one line"},
		"a topology with U+FFFE":      {func(p *plan.Plan) { p.Topology = "a\ufffe" }, "topology: want at most"},
		"a topology with U+2028":      {func(p *plan.Plan) { p.Topology = "a \u2028 b" }, "topology: want at most"},
		"a topology with U+2029":      {func(p *plan.Plan) { p.Topology = "\u2029 b" }, "topology: want at most"},
		"a topology with U+FFFF":      {func(p *plan.Plan) { p.Topology = "a\uffff" }, "topology: want at most"},
		"a topology that is not UTF8": {func(p *plan.Plan) { p.Topology = "\xff" }, "topology: want at most"},
	} {
		t.Run(name, func(t *testing.T) {
			p := roundRobin(t, 8, 1, 2, 3, 4)
			p.Pairs = map[plan.Pair]transport.VID{}
			c.spoil(p)
			if err := p.Validate(); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want ErrInvalid: %s", err, c.want)
			}
		})
	}
}

func TestPlan_ValidateReportsABoundedNumber(t *testing.T) {
	p := roundRobin(t, 100, 1)
	for i := range p.Nodes {
		p.Nodes[i].VID = 4095
	}
	lines := strings.Split(p.Validate().Error(), "\n")
	if len(lines) != strictyaml.MaxFaults+1 || lines[strictyaml.MaxFaults-1] != "bad plan: node 23: vid 4095: want 1 to 4094" || lines[strictyaml.MaxFaults] != "bad plan: and more (mend these first)" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestRoundRobin_RefusesWhatIsNoPlan(t *testing.T) {
	for name, err := range map[string]error{
		"no node":     second(plan.RoundRobin(nil, []transport.VID{1})),
		"no VID":      second(plan.RoundRobin(stations(2), nil)),
		"a MAC twice": second(plan.RoundRobin([]transport.MAC{station(1), station(1)}, []transport.VID{1})),
	} {
		if !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func second(_ *plan.Plan, err error) error { return err }

// A plan with changes differs from the one before by these alone, in whatever order they are made,
// and the one before is what it was. Back again, nothing is left but the rule.
func TestPlan_WithAndDiffAreInverse(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rng.IntN(20)
		p := randomPlan(t, rng, n)
		untouched := maps.Clone(p.Pairs)
		changes, back := make(map[plan.Pair]transport.VID), make(map[plan.Pair]transport.VID)
		var want []plan.Change
		for b := range n {
			for a := range b {
				pair := plan.Pair{A: a, B: b}
				back[pair] = p.PairVID(a, b)
				if rng.IntN(3) > 0 {
					continue
				}
				changes[pair] = p.VIDs[rng.IntN(5)]
				if changes[pair] != back[pair] {
					want = append(want, plan.Change{Pair: pair, From: back[pair], To: changes[pair]})
				}
			}
		}
		slices.SortFunc(want, func(x, y plan.Change) int { return x.Pair.Compare(y.Pair) })
		q, err := p.With(changes)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d := plan.Diff(p, q)
		if !slices.Equal(d.Pairs, want) || len(d.Defaults)+len(d.Added)+len(d.Removed) > 0 || d.Empty() != (len(want) == 0) {
			t.Errorf("seed %d: %+v, want %v", seed, d, want)
		}
		if again, err := q.With(back); err != nil || !plan.Diff(p, again).Empty() {
			t.Errorf("seed %d: back again: %v", seed, err)
		}
		if !maps.Equal(p.Pairs, untouched) {
			t.Errorf("seed %d: With changed the plan that it was called on", seed)
		}
	}
}

// The exceptions are only those pairs that need to be.
func TestPlan_WithForgetsExceptionsThatTheRuleCovers(t *testing.T) {
	p := roundRobin(t, 16, 1, 2, 3, 4)
	pair := plan.PairOf(8, 2)
	moved, err := p.With(map[plan.Pair]transport.VID{pair: 1})
	if err != nil || moved.PairVID(2, 8) != 1 || len(moved.Pairs) != 1 {
		t.Fatalf("%v, pairs %v", err, moved.Pairs)
	}
	back, err := moved.With(map[plan.Pair]transport.VID{pair: 3})
	if err != nil || len(back.Pairs) != 0 {
		t.Errorf("%v, pairs %v, want none", err, back.Pairs)
	}
	p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 5}: 1} // as the rule says
	other, err := p.With(map[plan.Pair]transport.VID{pair: 1})
	if want := (map[plan.Pair]transport.VID{pair: 1}); err != nil || !maps.Equal(other.Pairs, want) {
		t.Errorf("%v, pairs %v, want %v", err, other.Pairs, want)
	}
	for name, change := range map[string]map[plan.Pair]transport.VID{
		"the wrong way round": {{A: 8, B: 2}: 1},
		"a node with itself":  {{A: 2, B: 2}: 1},
		"an unknown node":     {{A: 2, B: 16}: 1},
		"no VID of the plan":  {{A: 2, B: 8}: 5},
		"VID 0":               {{A: 2, B: 8}: 0},
	} {
		if got, err := p.With(change); got != nil || !errors.Is(err, plan.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// Nodes are known by their addresses: one that has another number has not changed.
func TestDiff_FollowsNodesByTheirAddresses(t *testing.T) {
	p := roundRobin(t, 4, 1, 2)
	p.Nodes[2].Name = "old"
	q := *p
	q.Nodes = slices.Clone(p.Nodes)
	q.Nodes[2] = plan.Node{Name: "new", MAC: station(99), VID: 1}
	q.Nodes[0], q.Nodes[1] = q.Nodes[1], q.Nodes[0] // so their pair uses the other's default
	q.Nodes[3].VID = 1
	q.PCP = 5
	d := plan.Diff(p, &q)
	if want := []plan.Change{{Pair: plan.Pair{A: 0, B: 1}, From: 1, To: 2}}; !slices.Equal(d.Pairs, want) {
		t.Errorf("pairs %v, want %v", d.Pairs, want)
	}
	if want := []plan.NodeChange{{Node: 3, Old: 2, New: 1}}; !slices.Equal(d.Defaults, want) {
		t.Errorf("defaults %v, want %v", d.Defaults, want)
	}
	if len(d.Added) != 1 || d.Added[0].Name != "new" || len(d.Removed) != 1 || d.Removed[0].Name != "old" || d.OldPCP != 0 || d.NewPCP != 5 || d.Empty() {
		t.Errorf("%+v", d)
	}
}

// VIDs that may be used are a part of what a plan means: programs lose the pairs that they have set
// to one that goes. Their order is none.
func TestDiff_FollowsVIDs(t *testing.T) {
	p := roundRobin(t, 2, 1, 2, 9)
	q := *p
	q.VIDs = []transport.VID{7, 2, 4, 1}
	d := plan.Diff(p, &q)
	if !slices.Equal(d.AddedVIDs, []transport.VID{4, 7}) || !slices.Equal(d.RemovedVIDs, []transport.VID{9}) || d.Empty() {
		t.Errorf("added %v, removed %v, empty %v; want 4 and 7, 9, and false", d.AddedVIDs, d.RemovedVIDs, d.Empty())
	}
	q.VIDs = []transport.VID{9, 2, 1}
	if d := plan.Diff(p, &q); !d.Empty() || !slices.Equal(q.VIDs, []transport.VID{9, 2, 1}) {
		t.Errorf("%+v, of VIDs %v", d, q.VIDs)
	}
}

func TestPlan_FindNode(t *testing.T) {
	p := roundRobin(t, 3, 1)
	p.Nodes[1].Name, p.Nodes[2].Name = "left", "-0"
	for text, want := range map[string]int{"2": 2, "left": 1, "-0": 2, "02:00:00:00:00:01": 0, "02-00-00-00-00-03": 2} {
		if got, err := p.FindNode(text); got != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"3", "-1", "+1", "", "right", "02:00:00:00:00:09"} {
		if _, err := p.FindNode(text); !errors.Is(err, plan.ErrUnknownNode) || !strings.Contains(err.Error(), "want a number of 0 to 2") {
			t.Errorf("%q: %v, want ErrUnknownNode", text, err)
		}
	}
}

func TestParsePair(t *testing.T) {
	for text, want := range map[string]plan.Pair{"2-8": {A: 2, B: 8}, "8-2": {A: 2, B: 8}, "0-0": {}, "07-1": {A: 1, B: 7}} {
		if got, err := plan.ParsePair(text); got != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "2", "2-", "-8", "2--8", "2-8-9", "2 - 8", "+2-8", "a-b", "2-99999999999"} {
		if got, err := plan.ParsePair(text); err == nil || !strings.Contains(err.Error(), "such as 2-8") {
			t.Errorf("%q: %v, %v, want an error", text, got, err)
		}
	}
}

func ExampleRoundRobin() {
	macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}}
	pl, err := plan.RoundRobin(macs, []transport.VID{1, 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("1 and 2 use VID", pl.PairVID(2, 1))

	// Nodes 1 and 2 shall leave VID 2 to others.
	better, err := pl.With(map[plan.Pair]transport.VID{plan.PairOf(1, 2): 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Diff(pl, better).Pairs)
	for _, route := range better.Routes(2) {
		fmt.Println(route)
	}
	// Output:
	// 1 and 2 use VID 2
	// [1-2: VID 2 -> 1]
	// 02:00:00:00:00:01 by VID 1 PCP 0
	// 02:00:00:00:00:02 by VID 1 PCP 0
	// ff:ff:ff:ff:ff:ff by VID 1 PCP 0
}
