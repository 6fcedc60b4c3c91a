package mcd_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// A node table may come in any order.
func TestNodes_AreSorted(t *testing.T) {
	l := switched(t, 1)[0]
	node := func(id mcd.NodeID) mcd.Node {
		n := mcd.Node{ID: id, MACs: []transport.MAC{{2, 9, 0, 0, 0, byte(id)}}}
		if id == 0 {
			n.MACs[0] = l.MAC()
		}
		return n
	}
	e, err := mcd.Open(mcd.Config{Nodes: []mcd.Node{node(7), node(0), node(3)}}, l)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var got []mcd.NodeID
	for _, n := range e.Nodes() {
		got = append(got, n.ID)
	}
	if !slices.Equal(got, []mcd.NodeID{0, 3, 7}) {
		t.Errorf("nodes %v", got)
	}
	twice := node(7)
	twice.MACs[0][1]++
	if err := e.SetNodes([]mcd.Node{node(7), node(0), twice}); !errors.Is(err, mcd.ErrConflict) {
		t.Errorf("a number twice, and another one between: %v", err)
	}
}
