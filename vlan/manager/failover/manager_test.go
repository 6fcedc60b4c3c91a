package failover_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A new plan is in force at once for pairs that have an override, too.
func TestANewPlanEndsOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		planBy := func(vid transport.VID) *plan.Plan {
			p := &plan.Plan{VIDs: []transport.VID{1, 2, 3}}
			for k, ep := range n.eps {
				p.Nodes = append(p.Nodes, plan.Node{Name: fmt.Sprint("n", k), MAC: ep.MAC(0), VID: vid})
			}
			return p
		}
		cfg := control.FailoverConfig{VIDs: []transport.VID{1, 2, 3}, WaitToRestore: watched.WaitToRestore}
		var servers []*server.Server
		for _, ep := range n.eps {
			s, err := server.New(server.Config{MAC: ep.MAC(0), Plan: planBy(1)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			servers = append(servers, s)
			d, err := failover.Start(ep, failover.Config{Failover: cfg, Routes: failover.Manager(s, ep.MAC(0))})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
		}
		time.Sleep(time.Second)
		n.cables[1][0].SetUp(false)
		for _, vid := range []transport.VID{2, 3, 2} { // one of these was the override
			time.Sleep(settle)
			for _, s := range servers {
				if _, err := s.SetPlan(planBy(vid), "by the other switch"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(settle)
			for k, s := range servers {
				routes, _ := s.Routes()
				for _, r := range routes {
					if r.Tag.VID != vid {
						t.Errorf("node %d: %v, and the plan says VID %d", k, r, vid)
					}
				}
			}
		}
	})
}

// planBy is a plan of some VIDs in which all nodes have one.
func (n *network) planBy(vid transport.VID, vids ...transport.VID) *plan.Plan {
	p := &plan.Plan{VIDs: vids}
	for k, ep := range n.eps {
		p.Nodes = append(p.Nodes, plan.Node{Name: fmt.Sprint("n", k), MAC: ep.MAC(0), VID: vid})
	}
	return p
}

// manage gives each node a manager, with a failover.
func (n *network) manage(t *testing.T, p *plan.Plan) (servers []*server.Server) {
	t.Helper()
	for _, ep := range n.eps {
		s, err := server.New(server.Config{MAC: ep.MAC(0), Plan: p})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		servers = append(servers, s)
		d, err := failover.Start(ep, failover.Config{Failover: watched, Routes: failover.Manager(s, ep.MAC(0)), OnMove: n.moves.add})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
	}
	return servers
}

// A node's manager tells all its programs.
func TestFailoverByTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		servers := n.manage(t, n.planBy(1, 1, 2))
		vid := func(a, b int) transport.VID {
			routes, _ := servers[a].Routes()
			i := slices.IndexFunc(routes, func(r vlan.Route) bool { return r.Dst == n.eps[b].MAC(0) })
			if i < 0 {
				return 1 // the default
			}
			return routes[i].Tag.VID
		}
		time.Sleep(time.Second)
		n.cables[1][0].SetUp(false)
		time.Sleep(settle)
		if vid(0, 3) != 2 || vid(3, 0) != 2 || vid(0, 1) != 1 {
			t.Errorf("cut: VIDs %d, %d and %d, want 2, 2 and 1", vid(0, 3), vid(3, 0), vid(0, 1))
		}
		n.cables[1][0].SetUp(true)
		time.Sleep(3 * watched.WaitToRestore)
		if vid(0, 3) != 1 || vid(3, 0) != 1 {
			t.Errorf("healed: VIDs %d and %d, want 1", vid(0, 3), vid(3, 0))
		}
		for _, m := range n.moves.take() {
			if m.Err != nil {
				t.Errorf("%v", m)
			}
		}
		for _, s := range servers { // no override is left: another plan is followed
			if _, err := s.SetPlan(n.planBy(2, 1, 2), ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(settle)
		if vid(0, 3) != 2 || vid(3, 0) != 2 {
			t.Errorf("planned anew: VIDs %d and %d, want 2", vid(0, 3), vid(3, 0))
		}
	})
}

// Nodes that come and go are watched while they are there.
func TestNodesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		ds := n.watch(t)
		time.Sleep(settle)
		all := n.eps[0].Nodes()
		count := func() int { return len(ds[0].Paths()) / len(watched.VIDs) }
		if count() != 3 {
			t.Errorf("%d nodes are watched, want 3", count())
		}
		if err := n.eps[0].SetNodes(all[:2]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
		if count() != 1 {
			t.Errorf("%d nodes are watched, want 1", count())
		}
		if err := n.eps[0].SetNodes(all); err != nil {
			t.Fatal(err)
		}
		if err := n.tables[0].Set(vlan.Route{Dst: all[3].MACs[0]}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settle)
		if count() != 2 {
			t.Errorf("%d nodes are watched, want 2: frames to one of them have no tag", count())
		}
	})
}
