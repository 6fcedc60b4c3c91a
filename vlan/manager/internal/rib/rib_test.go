package rib_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// book is node 0's, with a plan of four nodes in which it uses VID 1 with all.
func book(t testing.TB) *rib.RIB {
	t.Helper()
	b := rib.New(managertest.MAC(0))
	if _, err := b.SetPlan(managertest.RoundRobin(t, 4, 3)); err != nil {
		t.Fatal(err)
	}
	return b
}

func pair(a, b int, vid transport.VID) rib.Change {
	return rib.Change{A: managertest.MAC(a), B: managertest.MAC(b), VID: vid}
}

func addOne(t testing.TB, b *rib.RIB, source rib.Source, peer int, vid transport.VID) []vlan.Route {
	t.Helper()
	changed, _, err := b.Add(source, 0, []rib.Change{pair(0, peer, vid)})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestLayers(t *testing.T) {
	b := book(t)
	for _, step := range []struct {
		name string
		do   func() []vlan.Route
		want transport.VID // to node 1
		told bool          // the route has changed
	}{
		{"the plan's at first", func() []vlan.Route { return nil }, 1, false},
		{"the operator's over it", func() []vlan.Route { return addOne(t, b, rib.Operator, 1, 2) }, 2, true},
		{"a program's over that", func() []vlan.Route { return addOne(t, b, 7, 1, 3) }, 3, true},
		{"another's over that, the same VID", func() []vlan.Route { return addOne(t, b, 8, 1, 3) }, 3, false},
		{"a failover over all", func() []vlan.Route {
			changed, err := b.Override("VID 3 is silent", []rib.Change{pair(1, 0, 1)})
			if err != nil {
				t.Error(err)
			}
			return changed
		}, 1, true},
		{"a candidate below it", func() []vlan.Route { return addOne(t, b, 9, 1, 2) }, 1, false},
		{"the failover's end uncovers the latest", func() []vlan.Route { return b.Restore(managertest.MAC(1), managertest.MAC(2)) }, 2, true},
		{"its end uncovers the one before", func() []vlan.Route { return b.Withdraw(9) }, 3, true},
		{"a candidate in the middle is withdrawn unseen", func() []vlan.Route { return b.Withdraw(7) }, 3, false},
		{"a source's second candidate replaces the first, on top", func() []vlan.Route { return addOne(t, b, rib.Operator, 1, 1) }, 1, true},
		{"which leaves none of the first below", func() []vlan.Route { return b.Withdraw(rib.Operator) }, 3, true},
		{"and the plan's at last", func() []vlan.Route { return b.Withdraw(8) }, 1, true},
	} {
		changed := step.do()
		if got := b.VID(managertest.MAC(1)); got != step.want || (len(changed) > 0) != step.told {
			t.Errorf("%s: VID %d, changed %v; want VID %d, changed %v", step.name, got, changed, step.want, step.told)
		}
		for _, r := range changed {
			if r.Dst != managertest.MAC(1) || r.Tag.VID != step.want {
				t.Errorf("%s: told %v", step.name, r)
			}
		}
	}
	if w := b.Candidates(); len(w) != 0 || b.Peers() != 0 {
		t.Errorf("left over: %v, %d peers", w, b.Peers())
	}
}

func TestChangesThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []rib.Change
		want    error
		text    string
	}{
		{"VID 0", []rib.Change{pair(0, 1, 0)}, rib.ErrBadVID, "pairs[0]: 02:00:00:00:00:01-02:00:00:00:00:02 by VID 0: bad VID 0 (want 1 to 4094, and one of the plan's: 1, 2, 3)"},
		{"VID 4095", []rib.Change{pair(0, 1, 4095)}, rib.ErrBadVID, "bad VID 4095 (want 1 to 4094"},
		{"VID not in the plan", []rib.Change{pair(0, 1, 4)}, rib.ErrBadVID, "bad VID 4: not in the plan (want one of its: 1, 2, 3)"},
		{"unknown node", []rib.Change{pair(0, 9, 1)}, plan.ErrUnknownNode, "unknown node 02:00:00:00:00:0a: not in the plan (want the address of one of its 4 nodes)"},
		{"others' pair, unknown node", []rib.Change{pair(1, 9, 1)}, plan.ErrUnknownNode, "unknown node"},
		{"a group", []rib.Change{{A: managertest.MAC(0), B: transport.MAC{1: 1, 0: 1}, VID: 1}}, plan.ErrUnknownNode, "unknown node 01:01"},
		{"others' default", []rib.Change{{A: managertest.MAC(1), B: transport.Broadcast, VID: 1}}, plan.ErrUnknownNode, "unknown node ff:ff"},
		{"one node twice", []rib.Change{pair(0, 0, 1)}, plan.ErrUnknownNode, "a pair of one node"},
		{"one-sided", []rib.Change{pair(0, 1, 2), pair(1, 0, 3)}, rib.ErrOneSided, "pairs[1]: 02:00:00:00:00:02-02:00:00:00:00:01 by VID 3: one-sided change: VID 2 for one direction and VID 3 for the other"},
		{"the second is wrong", []rib.Change{pair(0, 1, 2), pair(0, 2, 0)}, rib.ErrBadVID, "pairs[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := book(t)
			before := b.Routes()
			_, _, err := b.Add(5, 0, c.changes)
			_, overridden := b.Override("x", c.changes)
			for _, err := range []error{err, overridden} {
				if !errors.Is(err, c.want) || !contains(err, c.text) {
					t.Errorf("%v; want %v with %q", err, c.want, c.text)
				}
			}
			if !slices.Equal(b.Routes(), before) || len(b.Candidates()) != 0 {
				t.Errorf("it has changed something: %v", b.Candidates())
			}
		})
	}
	if _, _, err := rib.New(managertest.MAC(0)).Add(1, 0, []rib.Change{pair(0, 1, 1)}); !errors.Is(err, rib.ErrNoPlan) {
		t.Errorf("without a plan: %v, want rib.ErrNoPlan", err)
	}
}

// A failover, and nobody else, may lay a VID over the default route, which stays the plan's for all
// others to see, and is dropped with a plan that lacks the VID.
func TestTheDefaultRouteIsAFailoversToOverride(t *testing.T) {
	b := book(t)
	_, planned := b.VIDs(transport.Broadcast)
	other := planned%3 + 1
	change := []rib.Change{{A: managertest.MAC(0), B: transport.Broadcast, VID: other}}
	if _, _, err := b.Add(rib.Operator, 0, change); !errors.Is(err, plan.ErrUnknownNode) {
		t.Errorf("by an operator: %v, want plan.ErrUnknownNode", err)
	}
	if _, err := b.Override("x", []rib.Change{{A: managertest.MAC(0), B: transport.Broadcast, VID: 9}}); !errors.Is(err, rib.ErrBadVID) {
		t.Errorf("to VID 9: %v, want rib.ErrBadVID", err)
	}
	expect := func(when string, changed []vlan.Route, want transport.VID) {
		t.Helper()
		if len(changed) != 1 || changed[0].Dst != transport.Broadcast || changed[0].Tag.VID != want {
			t.Errorf("%s: told %v, want the default by VID %d", when, changed, want)
		}
		routes := b.Routes()
		if last := routes[len(routes)-1]; last.Dst != transport.Broadcast || last.Tag.VID != want {
			t.Errorf("%s: %v, want VID %d", when, last, want)
		}
		for _, dst := range []transport.MAC{transport.Broadcast, managertest.MAC(9)} {
			if inForce, preferred := b.VIDs(dst); inForce != want || preferred != planned {
				t.Errorf("%s: %v by VIDs %d and %d, want %d and %d", when, dst, inForce, preferred, want, planned)
			}
		}
	}
	changed, err := b.Override("x", change)
	if err != nil {
		t.Fatal(err)
	}
	expect("overridden", changed, other)
	expect("restored", b.Restore(transport.Broadcast), planned)
	if _, err := b.Override("x", change); err != nil {
		t.Fatal(err)
	}
	same := *b.Plan()
	if _, err := b.SetPlan(&same); err != nil {
		t.Fatal(err)
	}
	if inForce, _ := b.VIDs(transport.Broadcast); inForce != other {
		t.Errorf("behind another plan: VID %d, want that of the override, %d", inForce, other)
	}
	if b.Clear(); len(b.Candidates()) != 0 {
		t.Errorf("without a plan: %v is left", b.Candidates())
	}
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

func TestPlanThatCannotBeThisNodes(t *testing.T) {
	b := book(t)
	before := b.Plan()
	other := managertest.RoundRobin(t, 4, 2)
	other.Nodes = other.Nodes[1:] // without node 0
	if _, err := b.SetPlan(other); !errors.Is(err, plan.ErrInvalid) || !contains(err, "this node, 02:00:00:00:00:01, is not among its nodes") {
		t.Errorf("a plan without this node: %v", err)
	}
	twice := managertest.RoundRobin(t, 4, 2)
	twice.Nodes[2].MAC = twice.Nodes[1].MAC
	if _, err := b.SetPlan(twice); !errors.Is(err, plan.ErrInvalid) {
		t.Errorf("two nodes with one address: %v", err)
	}
	if b.Plan() != before {
		t.Error("the plan has changed")
	}
}

// A new plan keeps what programs want and it can fulfil, takes the operator's pairs back, and says
// what it had to drop.
func TestNewPlanOverCandidates(t *testing.T) {
	b := book(t)
	addOne(t, b, rib.Operator, 1, 2)
	addOne(t, b, 4, 2, 3)
	addOne(t, b, 5, 3, 2)
	if _, err := b.Override("silent", []rib.Change{pair(0, 2, 2)}); err != nil {
		t.Fatal(err)
	}
	smaller := managertest.RoundRobin(t, 3, 2) // neither node 3 nor VID 3
	dropped, err := b.SetPlan(smaller)
	if err != nil {
		t.Fatal(err)
	}
	want := []rib.Candidate{{Change: pair(0, 2, 3), Source: 4}, {Change: pair(0, 3, 2), Source: 5}}
	if !slices.Equal(dropped, want) {
		t.Errorf("dropped %v, want %v", dropped, want)
	}
	if b.VID(managertest.MAC(1)) != 1 || b.VID(managertest.MAC(2)) != 2 || b.VID(managertest.MAC(3)) != 0 {
		t.Errorf("VIDs %d, %d, %d; want the plan's 1, the override's 2, and none", b.VID(managertest.MAC(1)), b.VID(managertest.MAC(2)), b.VID(managertest.MAC(3)))
	}
	addOne(t, b, 4, 2, 2)
	want = []rib.Candidate{{Change: pair(0, 2, 2), Source: 4}}
	if dropped := b.Clear(); !slices.Equal(dropped, want) || b.Plan() != nil || len(b.Routes()) != 0 || len(b.Candidates()) != 0 {
		t.Errorf("cleared: %v, %v", dropped, b.Candidates())
	}
}

// Sources that add their candidates again, in any order, each get their old place.
func TestCandidatesAddedAgainGetTheirPlace(t *testing.T) {
	all := []struct {
		source rib.Source
		since  uint64
		vid    transport.VID
	}{{7, 3, 1}, {rib.Operator, 5, 2}, {8, 9, 3}}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		b := book(t)
		for _, i := range order {
			c := all[i]
			if _, _, err := b.Add(c.source, c.since, []rib.Change{pair(1, 0, c.vid)}); err != nil {
				t.Fatal(err)
			}
		}
		var got []transport.VID
		for _, w := range b.Candidates() {
			got = append(got, w.VID)
		}
		if want := []transport.VID{3, 2, 1}; !slices.Equal(got, want) || b.VID(managertest.MAC(1)) != 3 {
			t.Errorf("order %v: VIDs %v, the one in force first; want %v", order, got, want)
		}
		if got, want := b.Of(rib.Operator), []rib.Candidate{{Change: pair(0, 1, 2), Since: 5}}; !slices.Equal(got, want) {
			t.Errorf("the operator's: %v, want %v", got, want)
		}
	}
}

func TestVFREC_4_2_OnlyThisNodesPairsAreKept(t *testing.T) {
	b := book(t)
	changed, ignored, err := b.Add(3, 0, []rib.Change{pair(1, 2, 3), pair(3, 0, 2), pair(2, 3, 1)})
	if err != nil || ignored != 2 || len(changed) != 1 || len(b.Candidates()) != 1 {
		t.Errorf("%v, ignored %d, changed %v, entries %v; want 2 ignored, 1 changed", err, ignored, changed, b.Candidates())
	}
}

// An override does not change what a node's VID would be without it; other nodes go by the default.
func TestVIDsWithAndWithoutOverrides(t *testing.T) {
	b := book(t)
	addOne(t, b, 3, 1, 2)
	if _, err := b.Override("silent", []rib.Change{pair(0, 1, 3)}); err != nil {
		t.Fatal(err)
	}
	for peer, want := range map[int][2]transport.VID{1: {3, 2}, 2: {1, 1}, 9: {1, 1}} {
		if inForce, preferred := b.VIDs(managertest.MAC(peer)); inForce != want[0] || preferred != want[1] {
			t.Errorf("node %d: VID %d, without overrides %d; want %v", peer, inForce, preferred, want)
		}
	}
	b.Clear()
	if inForce, preferred := b.VIDs(managertest.MAC(1)); inForce != 0 || preferred != 0 {
		t.Errorf("without a plan: VIDs %d and %d", inForce, preferred)
	}
}

// A source has one candidate for a pair, however often it adds one.
func TestASourceHasOneCandidatePerPair(t *testing.T) {
	b := book(t)
	for k := range 100 {
		addOne(t, b, 3, 2, transport.VID(1+k%3))
	}
	if w := b.Candidates(); len(w) != 1 || w[0].VID != 1 {
		t.Errorf("entries %v, want one, of VID 1", w)
	}
}

func TestRoutesAreThePlansWithTheEntriesOverIt(t *testing.T) {
	b := book(t)
	addOne(t, b, 3, 2, 3)
	want := []vlan.Route{{Dst: managertest.MAC(1), OptionalTag: transport.Tagged(transport.Tag{VID: 1})}, {Dst: managertest.MAC(2), OptionalTag: transport.Tagged(transport.Tag{VID: 3})}, {Dst: managertest.MAC(3), OptionalTag: transport.Tagged(transport.Tag{VID: 1})},
		{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 1})}}
	if got := b.Routes(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// twin is a book that remembers nothing but what was said, and goes through all of it for each
// answer.
type naive struct {
	added     []rib.Candidate
	overrides map[int]transport.VID
	plan      *plan.Plan
}

func (w *naive) vid(peer int) transport.VID {
	if vid, ok := w.overrides[peer]; ok {
		return vid
	}
	for _, s := range slices.Backward(w.added) {
		if s.B == managertest.MAC(peer) {
			return s.VID
		}
	}
	return w.plan.PairVID(0, peer)
}

// The RIB against the naive one, over random operations; and the routes that it returns as changed are
// those that have.
func TestAgreesWithNaive(t *testing.T) {
	for seed := range uint64(40) {
		if err := agree(t, rand.New(rand.NewPCG(seed, 1)), 500); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func agree(t *testing.T, rng *rand.Rand, operations int) error {
	const nodes, sources = 6, 4
	b, w := rib.New(managertest.MAC(0)), &naive{overrides: make(map[int]transport.VID), plan: managertest.RoundRobin(t, nodes, 4)}
	if _, err := b.SetPlan(w.plan); err != nil {
		return err
	}
	table := make(map[transport.MAC]transport.VID) // what a program holds that is told of changes alone
	for _, r := range b.Routes() {
		table[r.Dst] = r.Tag.VID
	}
	for i := range operations {
		source, peer, vid := rib.Source(rng.IntN(sources)), 1+rng.IntN(nodes-1), transport.VID(1+rng.IntN(4))
		var changed []vlan.Route
		var err error
		switch op := rng.IntN(10); {
		case op < 5:
			changed, _, err = b.Add(source, 0, []rib.Change{pair(peer, 0, vid)})
			w.added = slices.DeleteFunc(w.added, func(c rib.Candidate) bool { return c.Source == source && c.B == managertest.MAC(peer) })
			w.added = append(w.added, rib.Candidate{Change: pair(0, peer, vid), Source: source})
		case op < 7:
			changed = b.Withdraw(source)
			w.added = slices.DeleteFunc(w.added, func(c rib.Candidate) bool { return c.Source == source })
		case op < 8:
			changed, err = b.Override("x", []rib.Change{pair(0, peer, vid)})
			w.overrides[peer] = vid
		case op < 9:
			changed = b.Restore(managertest.MAC(peer))
			delete(w.overrides, peer)
		default:
			before := b.Routes()
			if _, err = b.SetPlan(w.plan); err == nil {
				w.added = slices.DeleteFunc(w.added, func(c rib.Candidate) bool { return c.Source == rib.Operator })
				for j, r := range b.Routes() {
					if r != before[j] {
						changed = append(changed, r)
					}
				}
			}
		}
		if err != nil {
			return err
		}
		for _, r := range changed {
			table[r.Dst] = r.Tag.VID
		}
		for peer := range nodes {
			if peer > 0 && (b.VID(managertest.MAC(peer)) != w.vid(peer) || table[managertest.MAC(peer)] != w.vid(peer)) {
				return fmt.Errorf("operation %d: VID to node %d: RIB %d, told %d, naive %d", i, peer, b.VID(managertest.MAC(peer)), table[managertest.MAC(peer)], w.vid(peer))
			}
		}
	}
	return nil
}

// Routes are sorted by destination, whatever the order of the plan's nodes.
func TestRoutesAreSorted(t *testing.T) {
	r := rib.New(managertest.MAC(1))
	p, err := plan.RoundRobin([]transport.MAC{managertest.MAC(3), managertest.MAC(1), managertest.MAC(2), managertest.MAC(0)}, []transport.VID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	if routes := r.Routes(); len(routes) != 4 || !slices.IsSortedFunc(routes, func(a, b vlan.Route) int { return a.Dst.Compare(b.Dst) }) {
		t.Errorf("%v", routes)
	}
}

// An error lists 16 VIDs of the plan, and counts the others.
func TestErrorsListSomeVIDs(t *testing.T) {
	for vids, want := range map[int]string{15: "14, 15)", 16: "15, 16)", 17: "15, 16, and 1 more)", 20: "15, 16, and 4 more)"} {
		p := &plan.Plan{Nodes: []plan.Node{{MAC: transport.MAC{2, 0, 0, 0, 0, 1}, VID: 1}, {MAC: transport.MAC{2, 0, 0, 0, 0, 2}, VID: 1}}}
		for v := range vids {
			p.VIDs = append(p.VIDs, transport.VID(v+1))
		}
		r := rib.New(p.Nodes[0].MAC)
		if _, err := r.SetPlan(p); err != nil {
			t.Fatal(err)
		}
		changed, ignored, err := r.Add(rib.Operator, 1, []rib.Change{{A: p.Nodes[0].MAC, B: p.Nodes[1].MAC, VID: 99}})
		if err == nil || !strings.HasSuffix(err.Error(), want) || changed != nil || ignored != 0 {
			t.Errorf("%d VIDs: %v, %d, %v; want %s", vids, changed, ignored, err, want)
		}
	}
}

// Withdrawing tells of the routes in the order of their destinations.
func TestWithdrawnRoutesAreSorted(t *testing.T) {
	p := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for i := range 60 {
		p.Nodes = append(p.Nodes, plan.Node{MAC: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, VID: 1})
	}
	r := rib.New(p.Nodes[0].MAC)
	if _, err := r.SetPlan(p); err != nil {
		t.Fatal(err)
	}
	var changes []rib.Change
	for _, n := range p.Nodes[1:] {
		changes = append(changes, rib.Change{A: p.Nodes[0].MAC, B: n.MAC, VID: 2})
	}
	if _, _, err := r.Add(7, 1, changes); err != nil {
		t.Fatal(err)
	}
	changed := r.Withdraw(7)
	if len(changed) != 59 || !slices.IsSortedFunc(changed, func(a, b vlan.Route) int { return a.Dst.Compare(b.Dst) }) {
		t.Errorf("%d: %v", len(changed), changed)
	}
}
