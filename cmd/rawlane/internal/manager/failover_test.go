package manager

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/failover"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// plannedFor returns the manager of the first of some nodes, and their plan, which it has.
func plannedFor(t *testing.T, macs []transport.MAC, vids ...transport.VID) (*server.Server, *plan.Plan) {
	t.Helper()
	p, err := plan.RoundRobin(macs, vids)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{MAC: macs[0], Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, p
}

// A guard that cannot watch a plan does not end the manager: it says so and tries again, ever less
// often.
func TestGuardTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
		s, _ := plannedFor(t, macs, 1, 2)
		var log strings.Builder
		g := &guard{server: s, ifname: "no such one", self: macs[0], log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		g.run(ctx)
		if n := strings.Count(log.String(), "failover cannot watch the plan"); n < 5 || n > 12 {
			t.Errorf("in two minutes it tried %d times, want 5 to 12:\n%s", n, log.String())
		}
	})
}

// A plan without a choice of paths ends the error of the plan before: the manager does all that is
// asked of it.
func TestGuardForgetsTheErrorOfAnotherPlan(t *testing.T) {
	macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	s, p := plannedFor(t, macs, 1)
	addr, err := s.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := manager.NewClient(manager.Addr{Network: "tcp", Address: addr.String()}, nil)
	defer client.Close()
	s.ShowFailover(func() api.Failover { return api.Failover{Error: "no such interface"} })
	if h, err := client.Health(t.Context()); err != nil || h.OK {
		t.Fatalf("at first: %+v, %v", h, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	g := &guard{server: s, self: macs[0], log: slog.New(slog.DiscardHandler)}
	if err := g.watch(over, p); err != nil {
		t.Fatal(err)
	}
	if h, err := client.Health(t.Context()); err != nil || !h.OK {
		t.Errorf("%+v, %v", h, err)
	}
}

// A plan with more VIDs than a failover can watch is watched as far as it can be.
func TestGuardWatchesWhatItCan(t *testing.T) {
	var log strings.Builder
	g := &guard{log: slog.New(slog.NewTextHandler(&log, nil))}
	p := new(plan.Plan)
	for v := range control.MaxFailoverVIDs + 1 {
		p.VIDs = append(p.VIDs, transport.VID(v+1))
	}
	got := g.watched(p)
	if _, err := control.NewFailover(transport.MAC{2, 0, 0, 0, 0, 1}, control.FailoverConfig{VIDs: got}); err != nil {
		t.Error(err)
	}
	if len(got) != control.MaxFailoverVIDs || !slices.Equal(got, p.VIDs[:len(got)]) || !strings.Contains(log.String(), "pairs on others are not moved") {
		t.Errorf("%d of %d, and said %s", len(got), len(p.VIDs), log.String())
	}
	log.Reset()
	p.VIDs = got
	if len(g.watched(p)) != control.MaxFailoverVIDs || log.Len() > 0 {
		t.Errorf("%s", log.String())
	}
}

// Guards number nodes by their addresses, each differently, in whatever order plans list them; what
// else is listed changes the numbers of few. A plan that changes the order alone is watched as it
// is.
func TestGuardsNumberNodesByAddress(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	full := &plan.Plan{VIDs: []transport.VID{1, 2}}
	for k := range plan.MaxNodes {
		full.Nodes = append(full.Nodes, plan.Node{VID: 1, MAC: transport.MAC{2, byte(random.Uint32()), 0, byte(random.Uint32()), byte(k >> 8), byte(k)}})
	}
	number := func(p *plan.Plan) map[transport.MAC]mcd.NodeID {
		numbers := make(map[transport.MAC]mcd.NodeID)
		taken := make(map[mcd.NodeID]bool)
		for k, n := range nodesOf(p) {
			if n.MACs[0] != p.Nodes[k].MAC || taken[n.ID] || n.ID > mcd.MaxNodeID {
				t.Fatalf("%v, of %v, in use already: %v", n, p.Nodes[k].MAC, taken[n.ID])
			}
			numbers[n.MACs[0]], taken[n.ID] = n.ID, true
		}
		return numbers
	}
	all := number(full)
	turned := *full
	turned.Nodes = slices.Clone(full.Nodes)
	random.Shuffle(len(turned.Nodes), func(i, j int) { turned.Nodes[i], turned.Nodes[j] = turned.Nodes[j], turned.Nodes[i] })
	if !maps.Equal(number(&turned), all) {
		t.Error("in another order they have other numbers")
	}
	if !sameNetwork(full, &turned) {
		t.Error("in another order they are another network")
	}
	half := *full
	half.Nodes = full.Nodes[len(full.Nodes)/2:]
	differ := 0
	for mac, n := range number(&half) {
		if n != all[mac] {
			differ++
		}
	}
	if differ > len(half.Nodes)/20 {
		t.Errorf("half of them: %d of %d have other numbers, want 1 in 20 at most", differ, len(half.Nodes))
	}
	if sameNetwork(full, &half) {
		t.Error("half of them are the same network")
	}
}

// A move is in the log with the number that its node has in the plan.
func TestGuardTellsOfMoves(t *testing.T) {
	macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	s, p := plannedFor(t, macs, 1, 2)
	var log strings.Builder
	g := &guard{server: s, log: slog.New(slog.NewTextHandler(&log, nil))}
	g.tellMove(failover.Move{Node: nodesOf(p)[1].ID, Peer: macs[1], From: 1, To: 2, Reason: control.MoveMissed})
	if !strings.Contains(log.String(), `move="node 1: VID 1 -> VID 2: no answer" peer=02:00:00:00:00:02`) {
		t.Error(log.String())
	}
}

// Paths that go down, answer again and are up again are in the log, by the node's name.
func TestGuardTellsOfPaths(t *testing.T) {
	var log strings.Builder
	g := &guard{log: slog.New(slog.NewTextHandler(&log, nil))}
	mac := transport.MAC{2, 0, 0, 0, 0, 2}
	p := &plan.Plan{Nodes: []plan.Node{{Name: "n1", MAC: mac}}}
	path := func(state control.PathState) failover.Path {
		return failover.Path{PathStatus: control.PathStatus{Peer: mac, VID: 7, State: state}}
	}
	g.tell(p, []failover.Path{path(control.PathDown), path(control.PathWaitToRestore), path(control.PathUp)})
	for _, want := range []string{`level=WARN msg="a path is down" node=n1 peer=02:00:00:00:00:02 vid=7`, `level=INFO msg="a path answers again`, `level=INFO msg="a path is up again"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	log.Reset()
	g.tell(p, slices.Repeat([]failover.Path{path(control.PathDown)}, 1000))
	if n := strings.Count(log.String(), "\n"); n != maxToldPaths+1 || !strings.Contains(log.String(), "number=984") {
		t.Errorf("%d lines for 1,000 paths: %s", n, log.String())
	}
}

// A rollback may go back to no plan, where a manager began with none: then there is nothing to
// watch any more.
func TestGuardEndsWithThePlan(t *testing.T) {
	macs := []transport.MAC{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	p, err := plan.RoundRobin(macs, []transport.VID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{MAC: macs[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	addr, err := s.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := manager.NewClient(manager.Addr{Network: "tcp", Address: addr.String()}, nil)
	defer client.Close()
	if _, err := s.SetPlan(p, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Rollback(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	g := &guard{server: s, self: macs[0], log: slog.New(slog.DiscardHandler)}
	if err := g.awaitOther(ctx, p, nil); err != nil || ctx.Err() != nil {
		t.Errorf("it watches a plan that is gone: %v, %v", err, ctx.Err())
	}
}
