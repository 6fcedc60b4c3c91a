package failover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// expectDefaults checks the VID of each node's frames to groups and to all.
func (n *network) expectDefaults(t *testing.T, when string, want transport.VID) {
	t.Helper()
	for k, table := range n.tables {
		if tag := table.Route(transport.Broadcast); !tag.Tagged || tag.Tag.VID != want || tag.Tag.PCP != 2 {
			t.Errorf("%s: node %d sends to all by %v, want VID %d PCP 2", when, k, tag, want)
		}
	}
}

// broadcast reports whether what node 0 sends to all arrives at node 3.
func (n *network) broadcast(t *testing.T) bool {
	t.Helper()
	var ports []*mcd.Port
	for _, k := range []int{0, 3} {
		p, err := n.eps[k].OpenPort(9, mcd.PortOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ports = append(ports, p)
	}
	if err := ports[0].Broadcast(t.Context(), 9, []byte("who is there?")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	_, _, isThere, err := ports[1].TryRecv(make([]byte, 64))
	return isThere && err == nil
}

// Frames to groups and to all leave a dead VID as the pairs do, and come back with them: or no
// program could find its nodes any more.
func TestGroupsLeaveADeadVID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(time.Second)
		n.expectDefaults(t, "well", 1)
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		n.expectDefaults(t, "VID 1 is dead", 2)
		n.expectVIDs(t, 2) // those within a leaf stay
		if !n.broadcast(t) {
			t.Error("VID 1 is dead: what node 0 sends to all does not arrive")
		}
		n.cables[0][0].SetUp(true)
		time.Sleep(watched.WaitToRestore / 2)
		n.expectDefaults(t, "VID 1 answers, and has not held yet", 2)
		time.Sleep(2 * watched.WaitToRestore)
		n.expectDefaults(t, "VID 1 has held", 1)
		n.expectVIDs(t, 1)
		if moved := n.defaults.take(); len(moved) != 8 || moved[0].String() != "groups and all: VID 1 -> VID 2: no answer" {
			t.Errorf("%d moves of defaults, want one there and one back by each node: %v", len(moved), moved)
		}
	})
}

// A blackout moves no default: no VID is better than another one, and all come back at about the same
// time.
func TestABlackoutMovesNoDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(time.Second)
		for _, up := range []bool{false, true} {
			for top := range n.cables[0] {
				n.cables[0][top].SetUp(up)
			}
			time.Sleep(3 * watched.WaitToRestore)
		}
		n.expectDefaults(t, "behind a blackout", 1)
		if moved := n.defaults.take(); len(moved) != 0 {
			t.Errorf("%v", moved)
		}
	})
}

// By the manager the override of the default is in force for all programs, also where the pairs prefer
// another VID, and stays when the failover begins anew: it has not probed the VID yet.
func TestADefaultStaysOffADeadVIDOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.planBy(1, 1, 2)
		p.Pairs = make(map[plan.Pair]transport.VID)
		for a := range n.eps {
			for b := range a {
				p.Pairs[plan.PairOf(a, b)] = 2
			}
		}
		self := n.eps[0].MAC(0)
		var drivers []*failover.Driver
		var servers []*server.Server
		start := func(k int) *failover.Driver {
			d, err := failover.Start(n.eps[k], failover.Config{Failover: watched,
				Routes: failover.Manager(servers[k], n.eps[k].MAC(0)), OnDefault: n.defaults.add})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			return d
		}
		for k, ep := range n.eps {
			s, err := server.New(server.Config{MAC: ep.MAC(0), Plan: p})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			servers = append(servers, s)
			drivers = append(drivers, start(k))
		}
		byDefault := func() transport.VID {
			routes, _ := servers[0].Routes()
			return routes[len(routes)-1].Tag.VID
		}
		time.Sleep(time.Second)
		n.cables[1][0].SetUp(false)
		time.Sleep(2*control.DefaultProbe + 2*time.Second) // what is not in use is probed once a second
		if vid := byDefault(); vid != 2 {
			t.Fatalf("VID 1 is dead: VID %d to all, want 2", vid)
		}
		if inForce, preferred := servers[0].VIDs(n.eps[2].MAC(0)); inForce != 2 || preferred != 2 {
			t.Errorf("%v-%v: VIDs %d and %d, want 2", self, n.eps[2].MAC(0), inForce, preferred)
		}
		n.defaults.take()
		_ = drivers[0].Close()
		drivers[0] = start(0)
		time.Sleep(2 * watched.WaitToRestore)
		if moved := n.defaults.take(); byDefault() != 2 || len(moved) != 0 {
			t.Errorf("the failover has begun anew: VID %d to all by way of %v, want 2 all the time", byDefault(), moved)
		}
		n.cables[1][0].SetUp(true)
		time.Sleep(3 * watched.WaitToRestore)
		if vid := byDefault(); vid != 1 {
			t.Errorf("VID 1 has held: VID %d to all, want 1", vid)
		}
		n.cables[1][0].SetUp(false)
		time.Sleep(2*control.DefaultProbe + 2*time.Second)
		_ = drivers[0].Close()
		if err := drivers[0].Restore(); err != nil {
			t.Error(err)
		}
		if vid := byDefault(); vid != 1 {
			t.Errorf("restored: VID %d to all, want 1", vid)
		}
	})
}

// An override of a table's default is not that of the peers which have had the default route.
func TestADefaultsOverrideIsNotItsPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(time.Second)
		n.cables[0][0].SetUp(false)
		time.Sleep(10 * settle)
		n.expectVIDs(t, 2)
		by := vlan.Route{Dst: transport.Broadcast, OptionalTag: transport.Tagged(transport.Tag{VID: 2, PCP: 2})}
		for _, table := range n.tables { // the program's own default, from now on
			if err := table.Set(by); err != nil {
				t.Fatal(err)
			}
		}
		n.cables[0][0].SetUp(true)
		time.Sleep(3 * watched.WaitToRestore)
		n.expectDefaults(t, "the program wants VID 2", 2)
		n.expectVIDs(t, 1)
	})
}
