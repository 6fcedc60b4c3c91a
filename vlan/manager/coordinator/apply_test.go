package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Programs on all nodes send by the new plan when Apply returns, and both ends agree.
func TestApply(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 3)
	var sessions []*manager.Session
	for _, n := range all {
		sessions = append(sessions, n.Dial(t, manager.Dialer{}))
	}
	p := managertest.Turned(t, 4, 3, 1)
	r, err := coordinator.Apply(t.Context(), clients, p, coordinator.ApplyOptions{Reason: "better"})
	if err != nil {
		t.Fatal(err)
	}
	for a, s := range sessions {
		for b := range sessions {
			if a != b && managertest.VID(s.Table(), b) != p.PairVID(a, b) {
				t.Errorf("node %d sends to %d by VID %d, want %d", a, b, managertest.VID(s.Table(), b), p.PairVID(a, b))
			}
		}
	}
	if r.Pairs != 6 {
		t.Errorf("%+v", r)
	}
	for k, o := range r.Nodes {
		if o.State != coordinator.NodeChanged || o.MAC != managertest.MAC(k) || o.Routes == 0 || o.Late != 0 || o.Error != "" {
			t.Errorf("node %d: %+v", k, o)
		}
	}
	l, err := clients[2].Log(t.Context())
	if err != nil || l.Entries[len(l.Entries)-1].Reason != "better" {
		t.Errorf("log %+v, %v", l, err)
	}

	// Back, and forth again.
	back, _, err := coordinator.Previous(t.Context(), clients)
	if err != nil || api.PlanID(back) != api.PlanID(managertest.RoundRobin(t, 4, 3)) {
		t.Fatalf("the plan before: %v, %v", back, err)
	}
	if r, err = coordinator.Apply(t.Context(), clients, back, coordinator.ApplyOptions{}); err != nil || r.Pairs != 6 {
		t.Errorf("%+v, %v", r, err)
	}
	if again, _, err := coordinator.Previous(t.Context(), clients); err != nil || api.PlanID(again) != api.PlanID(p) {
		t.Errorf("the plan before that: %v, %v", again, err)
	}
	if r, err = coordinator.Apply(t.Context(), clients, back, coordinator.ApplyOptions{}); err != nil || r.Pairs != 0 {
		t.Errorf("the same again: %+v, %v", r, err)
	}
}

// What cannot be applied changes no node.
func TestApplyRefuses(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 3)
	dead := managertest.Start(t, 3, nil, t.TempDir())
	dead.Stop()
	nobody := manager.NewClient(manager.Addr{Network: "unix", Address: dead.Socket}, nil)
	twin := managertest.Start(t, 1, managertest.RoundRobin(t, 4, 3), t.TempDir())
	stranger := managertest.Start(t, 9, nil, t.TempDir())
	bad := managertest.Turned(t, 4, 3, 1)
	bad.Nodes[1].MAC = bad.Nodes[0].MAC
	for _, c := range []struct {
		name     string
		managers []*manager.Client
		plan     *plan.Plan
		is       error
		text     string
	}{
		{"no managers", nil, managertest.Turned(t, 4, 3, 1), nil, "no managers (want one for each node of the plan)"},
		{"two nodes with one MAC", clients, bad, plan.ErrInvalid, "is node 0's, too"},
		{"one-sided", clients[:3], managertest.Turned(t, 4, 3, 1), api.ErrOneSided, "the plan changes pairs of nodes whose managers are not given: 02:00:00:00:00:04 (give them all, or --partial"},
		{"two managers of one node", append(clients[:3:3], twin.Client), managertest.Turned(t, 4, 3, 1), nil, "both are of node 02:00:00:00:00:02"},
		{"a manager of no node of the plan", append(clients[:4:4], stranger.Client), managertest.Turned(t, 4, 3, 1), plan.ErrUnknownNode, "its node, 02:00:00:00:00:0a, is not in the plan"},
		{"one that is down", append(clients[:3:3], nobody), managertest.Turned(t, 4, 3, 1), api.ErrUnreachable, dead.Socket},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := coordinator.Apply(t.Context(), c.managers, c.plan, coordinator.ApplyOptions{})
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want %v with %q", err, c.is, c.text)
			}
			for _, o := range r.Nodes {
				if o.State != coordinator.NodeUnchanged {
					t.Errorf("%+v", o)
				}
			}
			for k, n := range all {
				if api.PlanID(n.Plan()) != api.PlanID(managertest.RoundRobin(t, 4, 3)) {
					t.Errorf("node %d has changed", k)
				}
			}
		})
	}
	// What is one-sided can be asked for.
	if _, err := coordinator.Apply(t.Context(), clients[:3], managertest.Turned(t, 4, 3, 1), coordinator.ApplyOptions{Partial: true}); err != nil {
		t.Errorf("partial: %v", err)
	}
}

// A lease that no manager grants is refused before any is asked.
func TestApplyRefuses_Leases(t *testing.T) {
	_, clients := managertest.StartAll(t, 2, 3)
	for _, lease := range []time.Duration{-1, time.Millisecond - 1, coordinator.MaxLease + 1} {
		r, err := coordinator.Apply(t.Context(), clients, managertest.Turned(t, 2, 3, 1), coordinator.ApplyOptions{Lease: lease})
		if want := fmt.Sprintf("lease %v: want 1ms to 1m0s", lease); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, n := range r.Nodes {
			if n.State != coordinator.NodeUnchanged {
				t.Errorf("lease %v: %+v", lease, n)
			}
		}
	}
}

// Two coordinators at once: one wins, or neither; all nodes have the same plan in the end.
func TestApplyTwiceAtOnce(t *testing.T) {
	for range 5 {
		all, clients := managertest.StartAll(t, 3, 3)
		errs := make(chan error)
		for by := range 2 {
			go func() {
				_, err := coordinator.Apply(t.Context(), clients, managertest.Turned(t, 3, 3, 1+by), coordinator.ApplyOptions{})
				errs <- err
			}()
		}
		failed := 0
		for range 2 {
			if err := <-errs; err != nil {
				failed++
				if !errors.Is(err, api.ErrBusy) && !errors.Is(err, api.ErrChanged) {
					t.Error(err)
				}
			}
		}
		first := api.PlanID(all[0].Plan())
		for k, n := range all {
			if got := api.PlanID(n.Plan()); got != first || failed == 2 && got != api.PlanID(managertest.RoundRobin(t, 3, 3)) {
				t.Errorf("node %d has another plan than node 0 (%d failed): %s", k, failed, got)
			}
		}
	}
}

// A slow program holds the answer up for a bounded time, and is counted.
func TestApplyCountsLatePrograms(t *testing.T) {
	all, clients := managertest.StartAll(t, 2, 2)
	s := all[0].Dial(t, manager.Dialer{DrainTimeout: 10 * time.Second})
	block := make(slowDrain)
	s.DrainWith(block)
	r, err := coordinator.Apply(t.Context(), clients, managertest.Turned(t, 2, 2, 1), coordinator.ApplyOptions{})
	close(block)
	if err != nil || r.Nodes[0].Late != 1 || r.Nodes[1].Late != 0 {
		t.Errorf("%+v, %v; want one late program on node 0", r, err)
	}
	managertest.Eventually(t, "it follows", func() bool { return managertest.VID(s.Table(), 1) == 2 })
}

// slowDrain is a drainer that waits until it is closed.
type slowDrain chan struct{}

func (d slowDrain) Drain(_ context.Context, change func() error, _ ...transport.MAC) error {
	<-d
	return change()
}

func ExampleApply() {
	// Each node has its manager; here there is one node.
	socket, end := managertest.Example()
	defer end()
	client := manager.NewClient(manager.Addr{Network: "unix", Address: socket}, nil)
	defer client.Close()
	p, err := plan.Parse("plan.yaml", strings.NewReader(`
vids: [1, 2]
nodes:
  - {mac: "02:00:00:00:00:01", vid: 2}
  - {mac: "02:00:00:00:00:02", vid: 1}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, managers := context.Background(), []*manager.Client{client}
	_, err = coordinator.Apply(ctx, managers, p, coordinator.ApplyOptions{})
	fmt.Println(errors.Is(err, api.ErrOneSided)) // the other node's manager is not given
	report, err := coordinator.Apply(ctx, managers, p, coordinator.ApplyOptions{Partial: true})
	fmt.Println(report.Nodes[0].State, err)
	// Output:
	// true
	// changed <nil>
}

// A manager that has stopped, and accepts connections without answering, ends an Apply with its
// lease, and nothing has changed.
func TestApplyDoesNotWaitForAStoppedManager(t *testing.T) {
	all, clients := managertest.StartAll(t, 2, 3)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // its queue takes connections meanwhile
	stopped := manager.NewClient(manager.Addr{Network: "unix", Address: l.Addr().String()}, nil)
	defer stopped.Close()
	old := api.PlanID(all[0].Plan())
	_, err = coordinator.Apply(t.Context(), append(clients, stopped), managertest.Turned(t, 2, 3, 1),
		coordinator.ApplyOptions{Lease: 100 * time.Millisecond})
	if !errors.Is(err, api.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) || api.PlanID(all[0].Plan()) != old {
		t.Errorf("%v, want ErrUnreachable after a while", err)
	}
}
