package failover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
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
