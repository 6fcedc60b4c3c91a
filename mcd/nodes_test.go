package mcd_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

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

// A new node table that has a node's addresses as they were keeps the order of its messages: what waits
// for the link stays ahead of what is sent afterwards.
func TestSetNodes_KeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, es := choosing(t, 2)
		from, p := port(t, es[0], 1), port(t, es[1], 1)
		link.refuse(func(f *transport.Frame) bool { return bytes.HasSuffix(f.Payload, []byte("first")) })
		if err := from.PostSend(&mcd.SendDesc{To: mcd.To(p.Addr()), Payload: []byte("first")}); err != nil {
			t.Fatal(err)
		}
		if err := es[0].SetNodes(es[0].Nodes()); err != nil {
			t.Fatal(err)
		}
		if err := from.TrySend(0, mcd.To(p.Addr()), []byte("second")); !errors.Is(err, transport.ErrBusy) {
			t.Errorf("TrySend past a message that waits: %v, want ErrBusy", err)
		}
		link.refuse(nil)
		expect(t, p, from.Addr(), "first")
	})
}
