package mcd_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
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

// A place that is set beside a new node table undoes nothing of it, whichever comes first.
func TestSetPlace(t *testing.T) {
	e, err := mcd.Open(mcd.Config{}, switched(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	nodes := []mcd.Node{{ID: 1, MACs: []transport.MAC{{2, 9, 0, 0, 0, 1}}}, {ID: 2, MACs: []transport.MAC{{2, 9, 0, 0, 0, 2}}}}
	var placing sync.WaitGroup
	stop := make(chan struct{})
	placing.Go(func() {
		for host := uint64(1); ; host++ {
			select {
			case <-stop:
				return
			default:
				e.SetPlace(1, mcd.Place{Host: host})
				e.SetPlace(3, mcd.Place{Host: host}) // no such node
			}
		}
	})
	defer placing.Wait()
	defer close(stop)
	for k := range 2000 {
		want := nodes[:1+k%2]
		if err := e.SetNodes(want); err != nil {
			t.Error(err)
		}
		if got := e.Nodes(); len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	e.SetPlace(2, mcd.Place{Host: 7})
	if got := e.Nodes(); len(got) != 2 || got[1].Place != (mcd.Place{Host: 7}) || got[1].MACs[0] != nodes[1].MACs[0] {
		t.Errorf("%v", got)
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
