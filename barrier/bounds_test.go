package barrier_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// counted is a cluster of two, and the frames that node 0 has sent; deaf has them lost.
func counted(t *testing.T) (c *cluster, sent *atomic.Int64, deaf *atomic.Bool) {
	sent, deaf = new(atomic.Int64), new(atomic.Bool)
	c = new(cluster)
	c.start(t, 2, mcdtest.Config{
		Endpoint: mcd.Config{Spin: -1},
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			if node != 0 {
				return l
			}
			return &filter{l, func(*transport.Frame) bool { sent.Add(1); return deaf.Load() }}
		},
	})
	return c, sent, deaf
}

// Who leaves says goodbye every 3 ms until it is heard, for 50 ms at most.
func TestBounds_Goodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent, deaf := counted(t)
		all := c.groups(t, barrier.GroupConfig{})
		expectNone(t, each(all, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }))
		deaf.Store(true)
		begun := time.Now()
		before := sent.Load()
		_ = all[0].Close()
		if took, n := time.Since(begun), sent.Load()-before; took != 50*time.Millisecond || n != 17 {
			t.Errorf("%d goodbyes in %v, want 17 in 50 ms", n, took)
		}
		deaf.Store(false)
	})
}

// A status request is repeated every 5 ms until it is answered.
func TestBounds_Status(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, sent, deaf := counted(t)
		all := c.groups(t, barrier.GroupConfig{PeerTimeout: time.Minute})
		deaf.Store(true)
		before := sent.Load()
		if _, err := all[0].Status(shorter(t, limit(t), 24*time.Millisecond), 0); err != nil {
			t.Error(err)
		}
		if n := sent.Load() - before; n != 5 {
			t.Errorf("%d requests in 24 ms, want 5", n)
		}
		deaf.Store(false)
	})
}

// Messages of 256 groups that a node has not made yet are kept, the newest: they bring their groups'
// barriers to an end at once. What is missing is asked for.
func TestBounds_EarlyMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		const groups = 258
		for id := range uint32(groups) {
			arrive(t, group(t, c.services[0], barrier.GroupConfig{ID: id, PeerTimeout: time.Minute}), barrier.Options{})
		}
		synctest.Wait()
		for _, x := range []struct {
			id   uint32
			kept bool
		}{{2, true}, {1, false}, {groups - 1, true}} {
			begun := time.Now()
			if err := group(t, c.services[1], barrier.GroupConfig{ID: x.id}).Barrier(limit(t)); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); (took == 0) != x.kept {
				t.Errorf("the message of group %d of %d was kept: want %v; its barrier took %v", x.id, groups, x.kept, took)
			}
		}
	})
}

// Messages that a new group has taken make room for others.
func TestBounds_EarlyMessagesThatWereTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		early := func(id uint32) {
			arrive(t, group(t, c.services[0], barrier.GroupConfig{ID: id, PeerTimeout: time.Minute}), barrier.Options{})
		}
		const groups = 256
		for id := range uint32(groups) {
			early(id)
		}
		synctest.Wait()
		for _, id := range []uint32{7, 0} { // once 7 is made there is room for one more, beside 0, the oldest
			begun := time.Now()
			if err := group(t, c.services[1], barrier.GroupConfig{ID: id}).Barrier(limit(t)); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("the barrier of group %d took %v: its message was not kept", id, took)
			}
			if id == 7 {
				early(groups)
				synctest.Wait()
			}
		}
	})
}

// The last 64 groups that a node has left answer for it: a member that has missed the end of a barrier
// hears of it, and does not wait for the timeout. Groups whose goodbyes were heard do not take the
// place of one that a member may yet ask: a program may make and leave any number of them.
func TestBounds_GroupsThatWereLeft(t *testing.T) {
	for _, x := range []struct {
		heard, unheard int // groups that are left behind that of the barrier, by whether all have heard the goodbye
		answered       bool
	}{{0, 63, true}, {0, 64, false}, {1000, 0, true}, {1000, 63, true}} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{PeerTimeout: 10 * time.Second})
			ticket := arrive(t, all[1], barrier.Options{})
			synctest.Wait()
			c.faults[1][0].Cut(true)
			if err := all[0].Barrier(limit(t)); err != nil {
				t.Fatal(err)
			}
			_ = all[0].Close()
			leave := func(groups int, members ...mcd.NodeID) {
				for id := range uint32(groups) {
					_ = group(t, c.services[0], barrier.GroupConfig{ID: 1 + id, Members: barrier.MaskOf(members...)}).Close()
				}
			}
			leave(x.heard, 0)
			leave(x.unheard, 0, 1)
			c.faults[1][0].Cut(false)
			if err := ticket.Wait(limit(t)); (err == nil) != x.answered {
				t.Errorf("behind %d groups and %d unheard goodbyes: %v, want an answer: %v", x.heard, x.unheard, err, x.answered)
			}
		})
	}
}

// An algorithm of one's own is proved for up to 128 members. Of more, this node's steps have ranks
// and networks that there are.
func TestBounds_Proof(t *testing.T) {
	links, err := fabric.Links(1)
	if err != nil {
		t.Fatal(err)
	}
	none := schedule.New("none", func(int, int) []schedule.Step { return nil })
	var nodes []mcd.Node
	for k := range 129 {
		mac := transport.MAC{2, 1, 1, 1, 1, byte(k)}
		if k == 0 {
			mac = links[0].MAC()
		}
		nodes = append(nodes, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{mac}})
	}
	eps := mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Nodes: nodes}}, []transport.Link{links[0]})
	s := service(t, eps[0], barrier.Config{})
	defer s.Close()
	if _, err := s.Group(barrier.GroupConfig{Members: first(128), Algorithm: none}); !errors.Is(err, schedule.ErrWrong) {
		t.Errorf("128 members: %v, want ErrWrong", err)
	}
	if _, err := s.Group(barrier.GroupConfig{Members: first(129), Algorithm: none}); err != nil {
		t.Errorf("129 members: %v", err)
	}
	for name, step := range map[string]schedule.Step{
		"awaits rank 129":        {Await: []schedule.Receive{{From: 129}}},
		"awaits rank -1":         {Await: []schedule.Receive{{From: -1}}},
		"awaits rank 0":          {Await: []schedule.Receive{{From: 0}}},
		"notifies rank 129":      {Notify: []schedule.Send{{To: 129}}},
		"notifies rank -2":       {Notify: []schedule.Send{{To: -2}}},
		"notifies rank 0":        {Notify: []schedule.Send{{To: 0}}},
		"wrong wants network -1": {Notify: []schedule.Send{{To: 1, NIC: -1}}},
	} {
		wrong := schedule.New("wrong", func(int, int) []schedule.Step { return []schedule.Step{step} })
		_, err := s.Group(barrier.GroupConfig{Members: first(129), Algorithm: wrong})
		isWrong := errors.Is(err, schedule.ErrWrong)
		if err == nil || !strings.Contains(err.Error(), name) || isWrong != strings.Contains(name, "rank") {
			t.Errorf("129 members, %s: %v", name, err)
		}
	}
	star := schedule.Star()
	own := schedule.New("own", star.Steps)
	for _, n := range []int{128, 129} { // two of one's own, and a release, need more labels than there are
		a := schedule.Hierarchical(own, own, 2)
		if _, err := s.Group(barrier.GroupConfig{Members: first(n), Algorithm: a}); !errors.Is(err, schedule.ErrWrong) {
			t.Errorf("%d members, too many levels: %v, want ErrWrong", n, err)
		}
	}
}

// first is the mask of the first n nodes.
func first(n int) barrier.Mask {
	var nodes []mcd.NodeID
	for k := range n {
		nodes = append(nodes, mcd.NodeID(k))
	}
	return barrier.MaskOf(nodes...)
}

// An error names eight nodes at most.
func TestBounds_Names(t *testing.T) {
	for n, want := range map[int]string{
		1: "waiting for node 0: ", 8: "waiting for nodes 0, 1, 2, 3, 4, 5, 6, 7: ", 9: "0, 1, 2, 3, 4, 5, 6, 7 and 1 more: ",
	} {
		err := &barrier.IncompleteError{Missing: first(n).Nodes(), Err: context.Canceled}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if barrier.DefaultPort != 254 || barrier.Numbers != 256 || barrier.DefaultPeerTimeout != 2*time.Second {
		t.Error("the documented defaults are others")
	}
}
