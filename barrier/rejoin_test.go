package barrier_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// processes are nodes with fixed addresses, whose processes end and begin anew.
type processes struct {
	t        *testing.T
	f        *fabric.Fabric
	sw       *fabric.Switch
	table    []mcd.Node
	eps      []*mcd.Endpoint
	services []*barrier.Service
	groups   []*barrier.Group
	cfg      barrier.GroupConfig
}

func newProcesses(t *testing.T, size int) *processes {
	n := newTable(t, size)
	for k := range size {
		n.begin(k)
	}
	return n
}

// newTable makes nodes whose processes have not begun.
func newTable(t *testing.T, size int) *processes {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := &processes{
		t: t, f: f, sw: f.AddSwitch(""),
		eps: make([]*mcd.Endpoint, size), services: make([]*barrier.Service, size), groups: make([]*barrier.Group, size),
	}
	for k := range size {
		n.table = append(n.table, mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{{2, 0, 0, 0, byte(k >> 8), byte(k + 1)}}})
	}
	return n
}

// begin starts a node's process, which makes its group.
func (n *processes) begin(k int) {
	n.t.Helper()
	n.open(k)
	n.groups[k] = group(n.t, n.services[k], n.cfg)
}

// open starts a node's process, which has not made its group yet.
func (n *processes) open(k int) {
	n.t.Helper()
	l, err := n.f.Attach(n.sw, fabric.Station{MAC: n.table[k].MACs[0]})
	if err != nil {
		n.t.Fatal(err)
	}
	if n.eps[k], err = mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: n.table, Spin: -1}, l); err != nil {
		n.t.Fatal(err)
	}
	n.services[k] = service(n.t, n.eps[k], barrier.Config{})
}

// anew has a survivor leave its group, and make it anew.
func (n *processes) anew(k int) {
	n.t.Helper()
	_ = n.groups[k].Close()
	n.groups[k] = group(n.t, n.services[k], n.cfg)
}

func (n *processes) close() {
	for _, e := range n.eps {
		if e != nil {
			_ = e.Close()
		}
	}
}

// A process dies and begins anew. The survivors are told, and make the group anew as often as
// they like; the newcomer makes its first one, and all go on together.
func TestRejoin(t *testing.T) {
	for _, c := range []struct{ size, dead, lives int }{{2, 1, 1}, {2, 0, 3}, {5, 2, 2}, {5, 4, 1}, {7, 0, 1}} {
		t.Run(fmt.Sprintf("%d nodes, %d", c.size, c.dead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newProcesses(t, c.size)
				defer n.close()
				stages(t, n.groups, 3, func(int, int) {})
				_ = n.eps[c.dead].Close()
				for life := range c.lives {
					for k, err := range each(n.groups, func(k int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
						if k != c.dead && !errors.Is(err, barrier.ErrNodeDown) {
							t.Fatalf("life %d, survivor %d: %v", life, k, err)
						}
					}
					for k := range n.groups {
						if k != c.dead {
							n.anew(k)
						}
					}
				}
				n.begin(c.dead)
				stages(t, n.groups, 5, func(k, _ int) { time.Sleep(time.Duration(k) * time.Millisecond) })
			})
		})
	}
}

// A process begins anew at another place, here with more cores. Survivors that have made the group anew before it came chose
// by its old place, and all are told so. They close the group and make it anew, and all go on together.
func TestRejoin_AtAnotherPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, dead = 16, 15
		n := newTable(t, size)
		defer n.close()
		for k := range n.table {
			n.table[k].Place = on(1, 3, 1, transport.ByKernel)
		}
		for k := range size {
			n.begin(k)
		}
		stages(t, n.groups, 2, func(int, int) {})
		_ = n.eps[dead].Close()
		for k, err := range each(n.groups[:dead], func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
			if !errors.Is(err, barrier.ErrNodeDown) {
				t.Fatalf("survivor %d: %v", k, err)
			}
			n.anew(k)
		}
		n.table[dead].Place = on(1, 0xffff, 16, transport.ByKernel) // of more cores
		for k := range dead {
			if err := n.eps[k].SetNodes(n.table); err != nil {
				t.Fatal(err)
			}
		}
		n.begin(dead)
		for k, err := range each(n.groups, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
			if !errors.Is(err, barrier.ErrMismatch) || !strings.Contains(err.Error(), "a member's place has changed: close the group") {
				t.Errorf("node %d: %v", k, err)
			}
		}
		for k := range size {
			n.anew(k)
		}
		stages(t, n.groups, 3, func(int, int) {})
	})
}

// A newcomer that has made two groups of one number may be at one epoch with the survivor, each in
// another one of them. The one that is in use stays as it is when the other one cannot go on.
func TestRejoin_DoesNotTakeTheEpochOfAGroupInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newProcesses(t, 2)
		defer n.close()
		_ = n.eps[1].Close()
		if err := n.groups[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Fatal(err)
		}
		n.anew(0)
		group(t, n.services[0], barrier.GroupConfig{})
		n.begin(1)
		both := []*barrier.Group{n.groups[0], group(t, n.services[1], barrier.GroupConfig{})}
		stages(t, both, 2, func(int, int) {})
		arrive(t, n.groups[1], barrier.Options{}) // its nacks are answered with the survivor's epoch
		time.Sleep(time.Second)
		stages(t, both, 2, func(int, int) {})
	})
}

// A newcomer sends in the survivors' epoch what it has sent in its own, and nothing else: here its arrival, and
// in its own what it asks for.
func TestRejoin_SendsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newProcesses(t, 2)
		defer n.close()
		_ = n.eps[1].Close()
		if err := n.groups[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Fatal(err)
		}
		n.anew(0)
		n.begin(1)
		before := n.eps[1].Counters().TxMessages
		arrive(t, n.groups[1], barrier.Options{})
		time.Sleep(5 * time.Millisecond)
		if sent := n.eps[1].Counters().TxMessages - before; sent != 3 {
			t.Errorf("it has sent %d messages, want 3", sent)
		}
	})
}

// Groups of other IDs have nothing to do with the epoch at which a newcomer joins a group, and stay at
// their own.
func TestRejoin_BesideGroupsOfOtherIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newProcesses(t, 2)
		defer n.close()
		_ = n.eps[1].Close()
		if err := n.groups[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Fatal(err)
		}
		before := group(t, n.services[0], barrier.GroupConfig{ID: 1})
		n.anew(0)
		n.anew(0)
		after := group(t, n.services[0], barrier.GroupConfig{ID: 2})
		n.begin(1)
		stages(t, n.groups, 3, func(int, int) {})
		stages(t, []*barrier.Group{before, group(t, n.services[1], barrier.GroupConfig{ID: 1})}, 3, func(int, int) {})
		stages(t, []*barrier.Group{after, group(t, n.services[1], barrier.GroupConfig{ID: 2})}, 3, func(int, int) {})
	})
}

// A process enters the first barrier and ends, in one way or the other, before another node has made the
// group. That node's group is with the process that begins after it, as if there had been no other: it
// does not take what it was told before for a word of this one.
func TestRejoin_BeforeTheGroupIsMadeElsewhere(t *testing.T) {
	for _, closes := range []bool{false, true} {
		for _, arrivesFirst := range []bool{true, !closes} { // who was killed has not said so
			synctest.Test(t, func(t *testing.T) {
				n := newTable(t, 2)
				defer n.close()
				n.begin(0)
				_ = n.services[0].Close()
				n.services[0] = service(t, n.eps[0], barrier.Config{}) // without a group

				n.begin(1)
				arrive(t, n.groups[1], barrier.Options{})
				synctest.Wait()
				if closes {
					_ = n.groups[1].Close()
				}
				_ = n.eps[1].Close()
				n.begin(1)
				var second barrier.Ticket
				if arrivesFirst {
					second = arrive(t, n.groups[1], barrier.Options{})
					synctest.Wait()
				}
				n.groups[0] = group(t, n.services[0], n.cfg)
				first := arrive(t, n.groups[0], barrier.Options{})
				synctest.Wait()
				if !arrivesFirst {
					if done, err := first.Done(); done {
						t.Errorf("the barrier has ended before the other process entered it: %v", err)
					}
					second = arrive(t, n.groups[1], barrier.Options{})
				}
				for k, ticket := range []barrier.Ticket{first, second} {
					if err := ticket.Wait(limit(t)); err != nil {
						t.Errorf("closed: %v, arrives first: %v: node %d: %v", closes, arrivesFirst, k, err)
					}
				}
			})
		}
	}
}
