package manager

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// A guard whose interface is removed says so, and watches again once there is one of that name. The
// test needs root: in a user namespace the other tests here would lack a loopback.
func TestGuardOpensARemovedInterfaceAnew(t *testing.T) {
	bed, elsewhere := testbed.ForTest(t, testbed.Config{}), testbed.ForTest(t, testbed.Config{Nodes: 1}).Node(0)
	if err := elsewhere.Remove(0); err != nil { // to make room for the other one
		t.Fatal(err)
	}
	p, err := plan.RoundRobin([]transport.MAC{testbed.MAC(0, 0), testbed.MAC(1, 0)}, []transport.VID{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{MAC: testbed.MAC(0, 0), Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
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
