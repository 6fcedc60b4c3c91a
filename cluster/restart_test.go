package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// A node that is started again on other cores is at its new place for all, and so are the others for
// it, as soon as it has joined.
func TestRestartedNodeBringsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		places := []mcd.Place{{Host: 7, Cores: 1, Usable: 1}, {Host: 7, Cores: 2, Usable: 1}, {Host: 8, Cores: 3, Usable: 2}}
		join := func(e *mcd.Endpoint) {
			_, err := cluster.Join(t.Context(), e, cluster.Config{Nodes: 3, Name: "n", Place: places[e.Node()]})
			if err != nil {
				t.Error(err)
			}
		}
		var nodes []*mcd.Endpoint
		var joining sync.WaitGroup
		for k := range places {
			e := s.node(mcd.Config{Node: mcd.NodeID(k)})
			nodes = append(nodes, e)
			joining.Go(func() { join(e) })
		}
		joining.Wait()
		check := func() {
			t.Helper()
			for k, e := range nodes {
				for _, n := range e.Nodes() {
					if n.Place != places[n.ID] {
						t.Errorf("to node %d, node %d is at %v, want %v", k, n.ID, n.Place, places[n.ID])
					}
				}
			}
		}
		check()
		l, err := s.f.Attach(s.switches[0], fabric.Station{MAC: restart(t, nodes[1])})
		if err != nil {
			t.Fatal(err)
		}
		places[1] = mcd.Place{Host: 8, Cores: 3, Usable: 2}
		nodes[1] = s.node(mcd.Config{Node: 1}, l)
		join(nodes[1])
		check()
	})
}

// restart closes a node, and returns its address.
func restart(t *testing.T, e *mcd.Endpoint) transport.MAC {
	t.Helper()
	mac := e.MAC(0)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return mac
}

// restartOneOfTwo has two nodes meet, and closes node 1, whose address it returns.
func restartOneOfTwo(t *testing.T, s *segment) transport.MAC {
	t.Helper()
	nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}), s.node(mcd.Config{Node: 1})}
	for _, r := range joinAll(nodes, 2, time.Minute) {
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	return restart(t, nodes[1])
}

// A node that is started again is answered by the complete ones.
func TestRestartedNodeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		l, err := s.f.Attach(s.switches[0], fabric.Station{MAC: restartOneOfTwo(t, s)})
		if err != nil {
			t.Fatal(err)
		}
		if r := joinAll([]*mcd.Endpoint{s.node(mcd.Config{Node: 1}, l)}, 2, time.Minute)[0]; r.err != nil {
			t.Error(r.err)
		}
		// Another station that claims its number learns that it is taken; the cluster goes on.
		if r := joinAll([]*mcd.Endpoint{s.node(mcd.Config{Node: 1})}, 2, time.Minute)[0]; !errors.Is(r.err, mcd.ErrConflict) {
			t.Errorf("the second node 1: %v", r.err)
		}
	})
}

// A node that begins anew at another address, as a link over shared memory has one by chance, meets
// nobody: those that know it at the old one do not answer. Its error says so.
func TestRestartedNodeAtAnotherAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		restartOneOfTwo(t, s)
		r := joinAll([]*mcd.Endpoint{s.node(mcd.Config{Node: 1})}, 2, time.Minute)[0]
		if !errors.Is(r.err, cluster.ErrIncomplete) || !strings.Contains(r.err.Error(), "keeps its address") {
			t.Errorf("node 1, anew at another address: %v", r.err)
		}
	})
}

// A node with two networks, of which the first link is gone, answers by the second one those that
// begin anew.
func TestRestartedNodeIsAnswered_ByTheNetworkThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 2)
		first := s.links()
		nodes := []*mcd.Endpoint{s.node(mcd.Config{Node: 0}, first...), s.node(mcd.Config{Node: 1})}
		for _, r := range joinAll(nodes, 2, time.Minute) {
			if r.err != nil {
				t.Fatal(r.err)
			}
		}
		macs := []transport.MAC{nodes[1].MAC(0), nodes[1].MAC(1)}
		if err := errors.Join(nodes[1].Close(), first[0].Close()); err != nil {
			t.Fatal(err)
		}
		var links []transport.Link
		for nic, mac := range macs {
			l, err := s.f.Attach(s.switches[nic], fabric.Station{MAC: mac})
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, l)
		}
		if r := joinAll([]*mcd.Endpoint{s.node(mcd.Config{Node: 1}, links...)}, 2, time.Minute)[0]; r.err != nil {
			t.Error(r.err)
		}
	})
}

// A node that dies while others seek, and begins anew at another address, is let in at that, once it
// was silent at the first one.
func TestRestartedNodeAtAnotherAddress_WhileOthersSeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSegment(t, 1)
		var joining sync.WaitGroup
		join := func(e *mcd.Endpoint, limit time.Duration, want error) {
			joining.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				if _, err := cluster.Join(ctx, e, cluster.Config{Nodes: 4, Name: "n"}); !errors.Is(err, want) {
					t.Errorf("node %d at %v: %v, want %v", e.Node(), e.MAC(0), err, want)
				}
			})
		}
		for k := range mcd.NodeID(2) {
			join(s.node(mcd.Config{Node: k}), 5*time.Second, nil)
		}
		dies := s.node(mcd.Config{Node: 2})
		join(dies, time.Second, mcd.ErrClosed)
		time.Sleep(100 * time.Millisecond) // virtual, as below
		restart(t, dies)
		time.Sleep(300 * time.Millisecond)
		join(s.node(mcd.Config{Node: 2}), 5*time.Second, nil)
		time.Sleep(200 * time.Millisecond)
		join(s.node(mcd.Config{Node: 3}), 5*time.Second, nil)
		joining.Wait()
	})
}
