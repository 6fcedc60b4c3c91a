package failover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// A pair whose program has taken it to a VID that is not watched is left alone there, though the
// one that it preferred before dies; and it is watched again when it comes back.
func TestAPairThatLeavesTheWatchedVIDsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		both := func(vid transport.VID) {
			t.Helper()
			tag := transport.Tagged(transport.Tag{VID: vid})
			for a, b := range map[int]int{0: 2, 2: 0} {
				if err := n.tables[a].Set(vlan.Route{Dst: n.eps[b].MAC(0), OptionalTag: tag}); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect := func(when string, want transport.VID) {
			t.Helper()
			time.Sleep(settle)
			if there, back := n.vid(0, 2), n.vid(2, 0); there != want || back != want {
				t.Errorf("%s: VIDs %d and %d, want %d", when, there, back, want)
			}
		}
		time.Sleep(time.Second)
		both(3)
		expect("on a VID that is not watched", 3)
		n.cables[0][0].SetUp(false)
		expect("its old VID has died", 3)
		both(1)
		expect("back on the dead VID", 2)
	})
}

// An override ends when the plan puts its pair on a VID that is not watched.
func TestAPlanOfUnwatchedVIDsEndsOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		servers := n.manage(t, n.planBy(1, 1, 2, 3))
		expect := func(when string, want transport.VID) {
			t.Helper()
			time.Sleep(settle)
			if now, _ := servers[0].VIDs(n.eps[2].MAC(0)); now != want {
				t.Errorf("%s: VID %d, want %d", when, now, want)
			}
		}
		time.Sleep(time.Second)
		n.cables[1][0].SetUp(false)
		expect("VID 1 is dead", 2)
		for _, s := range servers {
			if _, err := s.SetPlan(n.planBy(3, 1, 2, 3), "by a VID that is not watched"); err != nil {
				t.Fatal(err)
			}
		}
		expect("planned by VID 3", 3)
	})
}

// An override that an earlier driver has left ends where the next one watches the pair's VID no
// longer, or that of the override, as of a plan with more VIDs than can be watched.
func TestOverridesEndWhereTheNextDriverDoesNotWatch(t *testing.T) {
	for _, next := range [][]transport.VID{{1, 3}, {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t)
			routes := make([]failover.Routes, len(n.eps))
			for k, ep := range n.eps {
				s, err := server.New(server.Config{MAC: ep.MAC(0), Plan: n.planBy(1, 1, 2, 3)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				routes[k] = failover.Manager(s, ep.MAC(0))
			}
			watch := func(vids ...transport.VID) (unwatch func()) {
				var ds []*failover.Driver
				for k, ep := range n.eps {
					c := failover.Config{Failover: control.FailoverConfig{VIDs: vids}, Routes: routes[k], OnMove: n.moves.add}
					d, err := failover.Start(ep, c)
					if err != nil {
						t.Fatal(err)
					}
					ds = append(ds, d)
				}
				return func() {
					for _, d := range ds {
						_ = d.Close()
					}
				}
			}
			unwatch := watch(1, 2)
			time.Sleep(time.Second)
			n.cables[1][0].SetUp(false)
			time.Sleep(settle)
			unwatch()
			if now, _ := routes[0].VIDs(n.eps[2].MAC(0)); now != 2 {
				t.Fatalf("VID 1 is dead: VID %d, want 2", now)
			}
			n.moves.take()
			n.cables[1][0].SetUp(true)
			defer watch(next...)()
			time.Sleep(settle)
			if now, _ := routes[0].VIDs(n.eps[2].MAC(0)); now != 1 {
				t.Errorf("watched %v: VID %d, want 1", next, now)
			}
			if moved := n.moves.take(); len(moved) > 0 {
				t.Errorf("watched %v: moves %v", next, moved)
			}
		})
	}
}
