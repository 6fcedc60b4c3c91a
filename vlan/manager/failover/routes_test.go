package failover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"
)

// The override of a peer that leaves the node table ends: nobody watches its path any more.
func TestAPeerThatLeavesTakesItsOverrideAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(time.Second)
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		if vid := n.vid(0, 2); vid != 2 {
			t.Fatalf("VID 1 is dead: VID %d, want 2", vid)
		}
		if err := n.eps[0].SetNodes(n.eps[0].Nodes()[:2]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
		if vid := n.vid(0, 2); vid != 1 {
			t.Errorf("the peer has left: VID %d, want 1", vid)
		}
	})
}

// A table that has no room for the route of before keeps the override as one.
func TestARefusedRestoreKeepsTheOverride(t *testing.T) {
	const full = vlan.MaxCounts - 1
	peer := transport.MAC{2, 0, 0, 0, 0, 1}
	table, err := vlan.NewTable([]vlan.Route{{Dst: transport.Broadcast}})
	if err != nil {
		t.Fatal(err)
	}
	for counts := 1; counts < full; { // the default has one
		var routes []vlan.Route
		vid := transport.VID(counts/4000 + 1)
		for i := 0; i < 4000 && counts < full; i++ {
			mac := transport.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}
			routes = append(routes, vlan.Route{Dst: mac, OptionalTag: transport.Tagged(transport.Tag{VID: vid})})
			counts++
		}
		if err := table.Set(routes...); err != nil {
			t.Fatal(err)
		}
	}
	r := failover.Table(table)
	if err := r.Override(peer, 2, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(peer, ""); err == nil {
		t.Fatal("restored: this test shows nothing")
	}
	if inForce, preferred := r.VIDs(peer); inForce != 2 || preferred != 0 {
		t.Errorf("VIDs %d and %d, want 2 and 0", inForce, preferred)
	}
}
