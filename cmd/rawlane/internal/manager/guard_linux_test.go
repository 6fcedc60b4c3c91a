package manager

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// planned returns the manager of node 0, and the plan of two nodes that it has.
func planned(t *testing.T) (*server.Server, *plan.Plan) {
	t.Helper()
	return plannedFor(t, []transport.MAC{testbed.MAC(0, 0), testbed.MAC(1, 0)}, 1, 2)
}

// A guard whose interface is removed says so, and watches again once there is one of that name. The
// test needs root: in a user namespace the other tests here would lack a loopback.
func TestGuardOpensARemovedInterfaceAnew(t *testing.T) {
	bed, elsewhere := testbed.ForTest(t, testbed.Config{}), testbed.ForTest(t, testbed.Config{Nodes: 1}).Node(0)
	if err := elsewhere.Remove(0); err != nil { // to make room for the other one
		t.Fatal(err)
	}
	s, _ := planned(t)
	log := new(lockedBuffer)
	g := &guard{server: s, ifname: "eth0", self: testbed.MAC(0, 0), log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- bed.Node(0).Do(func() error { g.run(ctx); return nil }) }() // until cancel
	defer func() { cancel(); <-ended }()
	awaitLog := func(text string, times int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); strings.Count(log.String(), text) < times; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no %q, %d times, in\n%s", text, times, log)
			}
		}
	}
	awaitLog("failover watches", 1)
	if err := bed.Node(0).Move(0, elsewhere); err != nil {
		t.Fatal(err)
	}
	awaitLog("failover cannot watch the plan", 1)
	if err := elsewhere.Move(0, bed.Node(0)); err != nil {
		t.Fatal(err)
	}
	awaitLog("failover watches", 2)
}

// half is a link that hears nothing by VID 1.
type half struct{ transport.Link }

func (l half) Poll(frames []transport.Frame) (int, error) {
	n, err := l.Link.Poll(frames)
	heard := slices.DeleteFunc(frames[:n], func(f transport.Frame) bool { return f.Tagged && f.Tag.VID == 1 })
	return len(heard), err
}

// answerInPart has node 1 answer as its guard does with a plan, and hear nothing by VID 1.
func answerInPart(t *testing.T, node *testbed.Node, p *plan.Plan) {
	t.Helper()
	if err := node.Do(func() error {
		link, err := ring.Open("eth0", ring.Config{EtherType: guardEtherType})
		if err != nil {
			return err
		}
		self, _ := p.NodeOf(testbed.MAC(1, 0))
		nodes := nodesOf(p)
		peer, err := mcd.Open(mcd.Config{Node: nodes[self].ID, Nodes: nodes, EtherType: guardEtherType}, half{link})
		if err == nil {
			t.Cleanup(func() { _ = peer.Close() })
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A guard understands one whose plan lists the nodes in another order, as that of a change under way
// may, and moves pairs with it. The test needs root, as the one above.
func TestGuardsOfPlansWithOtherPlaces(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s, p := planned(t)
	other := *p
	other.Nodes = []plan.Node{p.Nodes[1], p.Nodes[0]}
	answerInPart(t, bed.Node(1), &other)
	g := &guard{server: s, ifname: "eth0", self: testbed.MAC(0, 0), log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error)
	go func() { ended <- bed.Node(0).Do(func() error { g.run(ctx); return nil }) }() // until cancel
	defer func() { cancel(); <-ended }()
	for inForce, _ := s.VIDs(testbed.MAC(1, 0)); inForce != 2; inForce, _ = s.VIDs(testbed.MAC(1, 0)) {
		if ctx.Err() != nil {
			t.Fatalf("VID %d, want 2", inForce)
		}
		time.Sleep(time.Millisecond)
	}
}

// A plan with one VID more leaves pairs off a VID that is down: they do not go back to it until that
// is found out anew. Pairs to which it gives another VID have that. The test needs root, as the
// others.
func TestGuardKeepsOverridesAcrossPlans(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s, p := planned(t)
	answerInPart(t, bed.Node(1), p)
	log := new(lockedBuffer)
	g := &guard{server: s, ifname: "eth0", self: testbed.MAC(0, 0), log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	ended := make(chan error)
	go func() { ended <- bed.Node(0).Do(func() error { g.run(ctx); return nil }) }() // until cancel
	defer func() { cancel(); <-ended }()
	await := func(what string, holds func() bool) {
		t.Helper()
		for !holds() {
			if ctx.Err() != nil {
				t.Fatalf("not %s: %s", what, log)
			}
			time.Sleep(time.Millisecond)
		}
	}
	vid := func() transport.VID { inForce, _ := s.VIDs(testbed.MAC(1, 0)); return inForce }
	await("moved", func() bool { return vid() == 2 })
	watches := 1
	for _, c := range []struct {
		planned transport.VID
		want    transport.VID
	}{{1, 2}, {3, 3}} {
		next := *p
		next.VIDs = []transport.VID{1, 2, 3, transport.VID(3 + watches)}
		next.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 1}: c.planned}
		if _, err := s.SetPlan(&next, "more VIDs"); err != nil {
			t.Fatal(err)
		}
		watches++
		await("watched", func() bool { return strings.Count(log.String(), "failover watches") == watches })
		if got := vid(); got != c.want {
			t.Errorf("planned by VID %d: VID %d, want %d", c.planned, got, c.want)
		}
	}
}

// A plan that changes the priority alone changes that of the probes, too: they are to meet what the
// programs' frames meet. The test needs root, as the one above.
func TestGuardProbesByThePlansPriority(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s, p := planned(t)
	var peer *mcd.Endpoint
	if err := bed.Node(1).Do(func() error {
		link, err := ring.Open("eth0", ring.Config{EtherType: guardEtherType})
		if err != nil {
			return err
		}
		nodes := nodesOf(p)
		peer, err = mcd.Open(mcd.Config{Node: nodes[1].ID, Nodes: nodes, EtherType: guardEtherType}, link)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	probes := make(chan transport.PCP)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer peer.WatchProbes(func(p *mcd.Probe) {
		if !p.Reply {
			select {
			case probes <- p.SentTag.Tag.PCP:
			case <-ctx.Done():
			}
		}
	})()
	g := &guard{server: s, ifname: "eth0", self: testbed.MAC(0, 0), log: slog.New(slog.DiscardHandler)}
	ended := make(chan error)
	go func() { ended <- bed.Node(0).Do(func() error { g.run(ctx); return nil }) }() // until cancel
	defer func() { cancel(); <-ended }()
	await := func(want transport.PCP) {
		t.Helper()
		for {
			select {
			case pcp := <-probes:
				if pcp == want {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no probe of PCP %d", want)
			}
		}
	}
	await(0)
	other := *p
	other.PCP = 5
	if _, err := s.SetPlan(&other, "another priority"); err != nil {
		t.Fatal(err)
	}
	await(5)
}
