package barrier

import (
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// What a group keeps, and what it takes to make one, is for its members, and not for all nodes of the
// table: programs with thousands of nodes make groups of few.
func TestGroup_KeepsItsMembersPlaces(t *testing.T) {
	ep := mcdtest.Open(t, 2, mcdtest.Config{})[0]
	s, err := Open(ep, Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	made := uint32(0)
	group := func() *Group {
		made++
		g, err := s.Group(GroupConfig{ID: made, Members: MaskOf(0, 1), Algorithm: schedule.Star()})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	few := testing.AllocsPerRun(10, func() { group() })
	table := ep.Nodes()
	for n := len(table); n < 4096; n++ {
		table = append(table, mcd.Node{
			ID: mcd.NodeID(n), MACs: []transport.MAC{{2, 9, 9, 9, byte(n >> 8), byte(n)}}, Place: mcd.Place{Host: 1, Cores: 1, Usable: 1},
		})
	}
	table[1].Place = mcd.Place{Host: 7, Cores: 1, Usable: 1}
	if err := ep.SetNodes(table); err != nil {
		t.Fatal(err)
	}
	many := testing.AllocsPerRun(10, func() { group() })
	if many > few+20 { // the mask of all nodes grows word by word
		t.Errorf("%v allocations, and %v of a table of two nodes", many, few)
	}
	if g := group(); len(g.places) != g.Size() || !g.places[0].IsZero() || g.places[1].Host != 7 {
		t.Errorf("a group of %d members keeps %v", g.Size(), g.places)
	}
}

// The places of a mask's nodes are theirs, whatever ranks these have in the group.
func TestGroup_PlacesOf(t *testing.T) {
	table := []mcd.Node{{ID: 9, Place: mcd.Place{Host: 9}}, {ID: 2, Place: mcd.Place{Host: 2}}, {ID: 5, Place: mcd.Place{Host: 5}}}
	g := &Group{nodes: []mcd.NodeID{2, 4, 9}}
	g.places = placesIn(table, g.nodes)
	for _, nodes := range [][]mcd.NodeID{{2, 4, 9}, {2, 9}, {9}, {4}} {
		for i, p := range g.placesOf(nodes) {
			if want := uint64(nodes[i]); p.Host != want && nodes[i] != 4 || nodes[i] == 4 && !p.IsZero() {
				t.Errorf("%v: node %d is on host %d", nodes, nodes[i], p.Host)
			}
		}
	}
}
