package failover_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A cable that is down for a second of four for four minutes moves its four pairs a few times, and
// not in each of the 60 rounds.
func TestACableThatFlapsMovesItsPairsAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.watch(t)
		time.Sleep(3 * time.Second)
		for range 60 {
			n.cables[0][0].SetUp(false)
			time.Sleep(time.Second)
			n.cables[0][0].SetUp(true)
			time.Sleep(3 * time.Second)
		}
		if moves := n.moves.take(); len(moves) > 4*8 {
			t.Errorf("%d moves by the 8 ends", len(moves))
		}
		time.Sleep(40 * time.Second)
		n.expectVIDs(t, 1)
	})
}

// A driver tells of each path that goes down, answers again and is up again, once, and its manager
// shows all.
func TestPathsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		var mu sync.Mutex
		told := make(map[string]int)
		take := func() (all map[string]int) {
			mu.Lock()
			defer mu.Unlock()
			all, told = told, make(map[string]int)
			return all
		}
		for k, ep := range n.eps {
			cfg := failover.Config{Failover: watched, Routes: failover.Table(n.tables[k])}
			if k == 0 {
				cfg.OnPaths = func(changed []failover.Path) {
					mu.Lock()
					defer mu.Unlock()
					for _, p := range changed {
						told[fmt.Sprint(p.Node, " by ", p.VID, " ", p.State)]++
					}
				}
			}
			d, err := failover.Start(ep, cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
		}
		expect := func(when string, want map[string]int) {
			t.Helper()
			if got := take(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		time.Sleep(3 * time.Second)
		expect("nothing has happened", map[string]int{})
		n.cables[0][0].SetUp(false)
		time.Sleep(settle)
		expect("cut", map[string]int{"2 by 1 down": 1, "3 by 1 down": 1})
		n.cables[0][0].SetUp(true)
		time.Sleep(time.Second)
		expect("mended", map[string]int{"2 by 1 wait-to-restore": 1, "3 by 1 wait-to-restore": 1})
		time.Sleep(3 * watched.WaitToRestore)
		expect("held", map[string]int{"2 by 1 up": 1, "3 by 1 up": 1})
	})
}

// A manager that is restarted while a path is down does not send by it again before it has held.
func TestOverridesOutliveTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := &plan.Plan{VIDs: []transport.VID{1, 2}}
		for k, ep := range n.eps {
			p.Nodes = append(p.Nodes, plan.Node{Name: fmt.Sprint("n", k), MAC: ep.MAC(0), VID: 1})
		}
		dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
		servers, drivers := make([]*server.Server, 4), make([]*failover.Driver, 4)
		start := func(k int) {
			t.Helper()
			var err error
			self := n.eps[k].MAC(0)
			servers[k], err = server.New(server.Config{MAC: self, Plan: p, State: dirs[k] + "/state", KeepOverrides: true})
			if err != nil {
				t.Fatal(err)
			}
			drivers[k], err = failover.Start(n.eps[k], failover.Config{Failover: watched, Routes: failover.Manager(servers[k], self), OnMove: n.moves.add})
			if err != nil {
				t.Fatal(err)
			}
		}
		stop := func(k int) { _, _ = drivers[k].Close(), servers[k].Close() }
		for k := range n.eps {
			start(k)
		}
		vid := func(a, b int) transport.VID { now, _ := servers[a].VIDs(n.eps[b].MAC(0)); return now }
		time.Sleep(time.Second)
		n.cables[1][0].SetUp(false)
		time.Sleep(settle)
		for _, k := range []int{0, 3} { // of the pair 0-3, one that decides and one that follows
			stop(k)
			start(k)
			n.moves.take()
			for range 20 {
				time.Sleep(50 * time.Millisecond)
				if vid(0, 3) != 2 || vid(3, 0) != 2 || vid(0, 1) != 1 {
					t.Fatalf("node %d restarted: VIDs %d and %d between the leaves, %d within one; want 2, 2 and 1", k, vid(0, 3), vid(3, 0), vid(0, 1))
				}
			}
			if moves := n.moves.take(); len(moves) > 0 {
				t.Errorf("node %d restarted: %v", k, moves)
			}
		}
		n.cables[1][0].SetUp(true)
		time.Sleep(3 * watched.WaitToRestore)
		if vid(0, 3) != 1 || vid(3, 0) != 1 {
			t.Errorf("mended: VIDs %d and %d, want 1", vid(0, 3), vid(3, 0))
		}
		for k := range n.eps {
			stop(k)
		}
	})
}
