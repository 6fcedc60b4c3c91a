package failover_test

import (
	"errors"
	"sync"
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

// A route that the program sets while an override is in force is its own, the override's VID as
// well, and so is the default that is left where it takes the peer's route out.
func TestARouteThatTheProgramSetsIsItsOwn(t *testing.T) {
	peer := transport.MAC{2, 0, 0, 0, 0, 1}
	route := func(dst transport.MAC, vid transport.VID) vlan.Route {
		return vlan.Route{Dst: dst, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
	}
	for name, c := range map[string]struct {
		change func(*vlan.Table) error
		want   transport.VID
	}{
		"none":           {func(*vlan.Table) error { return nil }, 1},
		"of another":     {func(t *vlan.Table) error { return t.Set(route(transport.MAC{2, 0, 0, 0, 0, 2}, 2)) }, 1},
		"another VID":    {func(t *vlan.Table) error { return t.Set(route(peer, 3)) }, 3},
		"the same VID":   {func(t *vlan.Table) error { return t.Set(route(peer, 2)) }, 2},
		"all":            {func(t *vlan.Table) error { return t.Replace([]vlan.Route{route(peer, 2)}) }, 2},
		"the default's":  {func(t *vlan.Table) error { return t.Replace([]vlan.Route{route(transport.Broadcast, 2)}) }, 2},
		"there and back": {func(t *vlan.Table) error { return errors.Join(t.Set(route(peer, 3)), t.Set(route(peer, 2))) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := vlan.NewTable([]vlan.Route{route(peer, 1)})
			if err != nil {
				t.Fatal(err)
			}
			r := failover.Table(table)
			if err := errors.Join(r.Override(peer, 4, ""), r.Override(peer, 2, ""), c.change(table)); err != nil {
				t.Fatal(err)
			}
			if _, preferred := r.VIDs(peer); preferred != c.want {
				t.Errorf("preferred: VID %d, want %d", preferred, c.want)
			}
			if err := errors.Join(r.Override(peer, 4, ""), r.Restore(peer, "")); err != nil {
				t.Fatal(err)
			}
			if inForce, preferred := r.VIDs(peer); inForce != c.want || preferred != c.want {
				t.Errorf("restored: VIDs %d and %d, want %d", inForce, preferred, c.want)
			}
		})
	}
}

// A route that the program sets at the very time of an override, or of its end, is not lost: it is in
// force, or comes back with the end.
func TestARouteThatTheProgramSetsMeanwhileIsKept(t *testing.T) {
	peer := transport.MAC{2, 0, 0, 0, 0, 1}
	by := func(vid transport.VID) vlan.Route {
		return vlan.Route{Dst: peer, OptionalTag: transport.Tagged(transport.Tag{VID: vid})}
	}
	for _, during := range []string{"override", "restore"} {
		lost := 0
		for range 20_000 {
			table, err := vlan.NewTable([]vlan.Route{by(1)})
			if err != nil {
				t.Fatal(err)
			}
			r := failover.Table(table)
			if during == "restore" {
				if err := r.Override(peer, 2, ""); err != nil {
					t.Fatal(err)
				}
			}
			var set sync.WaitGroup
			begun := make(chan struct{})
			set.Go(func() {
				close(begun)
				if err := table.Set(by(3)); err != nil {
					t.Error(err)
				}
			})
			<-begun
			if during == "override" {
				err = r.Override(peer, 2, "")
			} else {
				err = r.Restore(peer, "")
			}
			set.Wait()
			if err := errors.Join(err, r.Restore(peer, "")); err != nil {
				t.Fatal(err)
			}
			if tag := table.Route(peer); tag != by(3).OptionalTag {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%s: the program's route was lost %d times", during, lost)
		}
	}
}
