package server_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

var seeds = flag.Int("apply.seeds", 25, "random group changes to try")

// A node may refuse, be slow, be too slow, or die at any step of writing. If Apply succeeds all
// have the new plan; if not, all that live have the old one. Whoever died comes back with the old
// one or the new one, and applying again mends it.
func TestApplyWithFaults(t *testing.T) {
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { t.Parallel(); applyWithFaults(t, seed) })
	}
}

func applyWithFaults(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	const n, vids = 4, 3
	var all []*managertest.Node
	var clients []*manager.Client
	dirs := make([]string, n)
	for k := range n {
		dirs[k] = t.TempDir()
		all = append(all, managertest.Start(t, k, managertest.RoundRobin(t, n, vids), dirs[k]))
		clients = append(clients, all[k].Client)
	}
	lease := 300 * time.Millisecond
	faults, died := injectFaults(rng, all, lease)
	old, next := managertest.RoundRobin(t, n, vids), managertest.Turned(t, n, vids, 1)
	report, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{Lease: lease})
	for k := range n {
		if died[k] {
			all[k].Stop()
			all[k] = managertest.Start(t, k, nil, dirs[k])
			clients[k] = all[k].Client
		}
		all[k].OnStep(nil)
		got := api.PlanID(all[k].Plan())
		isOld, isNew := got == api.PlanID(old), got == api.PlanID(next)
		switch {
		case err == nil && !isNew:
			t.Errorf("Apply succeeded, and node %d has %s", k, got)
		case err != nil && died[k] && !isOld && !isNew:
			t.Errorf("node %d died, and has neither plan: %s", k, got)
		case err != nil && !died[k] && !isOld:
			t.Errorf("Apply failed, and node %d, which lives, has %s", k, got)
		}
		if state := report.Nodes[k].State; !died[k] && (state == coordinator.NodeUnknown || (state == coordinator.NodeChanged) != isNew) {
			t.Errorf("node %d: report says %v, it has the new plan: %v", k, state, isNew)
		}
	}
	if again := applyAgain(t, clients, next); again != nil {
		t.Errorf("again: %v", again)
	}
	for k, m := range all {
		if api.PlanID(m.Plan()) != api.PlanID(next) {
			t.Errorf("again: node %d has %s", k, api.PlanID(m.Plan()))
		}
	}
	if t.Failed() {
		t.Logf("faults %q, Apply: %v, report %+v; run with -run 'TestApplyWithFaults/seed=%d$'", faults, err, report, seed)
	}
}

// applyAgain applies a plan. On a machine that stood still a manager may have the change that failed
// before prepared yet, as it has not heard of its abort: until its lease is over.
func applyAgain(t *testing.T, clients []*manager.Client, next *plan.Plan) error {
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{Lease: 5 * time.Second})
		if !errors.Is(err, api.ErrBusy) || time.Since(begun) > 20*time.Second {
			return err
		}
	}
}

// injectFaults has some managers die, refuse or be slow at some step. It returns what, and who has
// died, once they have.
func injectFaults(rng *rand.Rand, all []*managertest.Node, lease time.Duration) (faults []string, died []bool) {
	faults, died = make([]string, len(all)), make([]bool, len(all))
	for k := range all {
		if rng.IntN(2) == 0 {
			continue
		}
		step := server.Steps[rng.IntN(len(server.Steps))]
		kind := []string{"die", "refuse", "slow", "too slow"}[rng.IntN(4)]
		faults[k] = kind + " at " + step
		all[k].OnStep(func(s string) error {
			if s != step {
				return nil
			}
			switch kind {
			case "die":
				died[k] = true
				return all[k].Kill()
			case "refuse":
				return errors.New("no space left on device")
			case "slow":
				time.Sleep(20 * time.Millisecond)
			case "too slow":
				time.Sleep(lease + 50*time.Millisecond)
			}
			return nil
		})
	}
	return faults, died
}

// apart leaves node 2 of three with the next plan, and the others with the old one: its manager
// dies when it has changed and before it says so.
func apart(t *testing.T) (all []*managertest.Node, clients []*manager.Client, old, next *plan.Plan) {
	t.Helper()
	all, clients = managertest.StartAll(t, 3, 3)
	old, next = managertest.RoundRobin(t, 3, 3), managertest.Turned(t, 3, 3, 1)
	var died atomic.Bool
	all[2].OnStep(func(step string) error {
		if step == "fsync" { // behind the renaming
			died.Store(true)
			return all[2].Kill()
		}
		return nil
	})
	// Apply takes as long as its lease, and 5 s. Where a machine that stands still lets the lease end
	// before node 2 has changed, another one is made.
	apply := func(lease time.Duration) error {
		_, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{Lease: lease, Reason: "better"})
		return err
	}
	lease := 500 * time.Millisecond
	err := apply(lease)
	for ; !died.Load() && lease < 10*time.Second; err = apply(lease) {
		time.Sleep(lease) // what is prepared is forgotten
		lease *= 5
	}
	if !errors.Is(err, coordinator.ErrPlansDiffer) || !errors.Is(err, api.ErrUnreachable) {
		t.Fatalf("Apply: %v; want ErrPlansDiffer and ErrUnreachable", err)
	}
	for _, want := range []string{"plan " + api.PlanID(next), "may be that of 02:00:00:00:00:03 at unix:" + all[2].Socket, "rawlane route apply again"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Apply: %v; want %q in it", err, want)
		}
	}
	dir := all[2].Dir
	all[2].Stop()
	all[2] = managertest.Start(t, 2, nil, dir)
	clients[2] = all[2].Client
	return all, clients, old, next
}

// A manager that dies between its own commit and the others' going back comes back with the new
// plan. Everybody who asks is told, by name; and to apply a plan again mends it.
func TestNodesThatDisagreeAreNamed(t *testing.T) {
	t.Parallel() // it waits for a manager that does not answer
	all, clients, old, next := apart(t)
	names := func(err error) {
		t.Helper()
		var differ *coordinator.PlansError
		if !errors.As(err, &differ) || !errors.Is(err, coordinator.ErrPlansDiffer) {
			t.Errorf("%v; want a PlansError", err)
			return
		}
		if p := differ.Plans; len(p) != 2 || p[0].ID != api.PlanID(old) || len(p[0].Nodes) != 2 || p[1].ID != api.PlanID(next) || p[1].Reason != "better" {
			t.Errorf("%+v", p)
		}
		if want := "(better): 02:00:00:00:00:03 at unix:" + all[2].Socket + " (give all of them one: rawlane route apply)"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	s := coordinator.Survey(t.Context(), clients)
	names(s.Err())
	for k, n := range s.Nodes {
		want := old
		if k == 2 {
			want = next
		}
		if n.PlanID != api.PlanID(want) || n.MAC != managertest.MAC(k) || n.Error != "" {
			t.Errorf("node %d: %+v", k, n)
		}
		if h, err := clients[k].Health(t.Context()); err != nil || h.PlanID != n.PlanID {
			t.Errorf("node %d: health %+v, %v", k, h, err)
		}
		if _, metrics, _ := all[k].Ask(t, "GET", "/metrics", ""); !strings.Contains(metrics, "\nrawlane_plan_info{id=\""+n.PlanID+"\"} 1\n") {
			t.Errorf("node %d: metrics %s", k, metrics)
		}
	}
	network, err := topology.Parse("vbft:3x3x1")
	if err != nil {
		t.Fatal(err)
	}
	names(coordinator.Control(t.Context(), clients, coordinator.ControlOptions{Topology: network}))

	r, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{})
	if err != nil || r.PlanID != api.PlanID(next) || r.Nodes[0].PlanBefore != api.PlanID(old) || r.Nodes[2].PlanBefore != api.PlanID(next) {
		t.Errorf("again: %+v, %v", r, err)
	}
	if err := coordinator.Survey(t.Context(), clients).Err(); err != nil {
		t.Errorf("mended: %v", err)
	}
}

// A rollback of all does not guess which plan is meant where nodes do not agree on the present one.
func TestPreviousNamesNodesThatDisagree(t *testing.T) {
	t.Parallel() // it waits for a manager that does not answer
	_, clients, old, _ := apart(t)
	if _, err := clients[0].SetPlan(t.Context(), managertest.Turned(t, 3, 3, 2), "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := clients[1].SetPlan(t.Context(), old, "", 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := coordinator.Previous(t.Context(), clients); err == nil {
		t.Error("it found a plan that all had before")
	}
	if _, err := clients[1].SetPlan(t.Context(), managertest.Turned(t, 3, 3, 1), "", 0); err != nil {
		t.Fatal(err)
	}
	if back, _, err := coordinator.Previous(t.Context(), clients); err != nil || api.PlanID(back) != api.PlanID(old) {
		t.Errorf("all had one plan before: %v, %v", back, err)
	}
	if _, err := clients[0].SetPlan(t.Context(), managertest.Turned(t, 3, 3, 1), "", 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := coordinator.Previous(t.Context(), clients)
	if !errors.Is(err, coordinator.ErrPlansDiffer) || !strings.Contains(err.Error(), "before the present plan, managers have different plans") {
		t.Errorf("the same plan now, others before: %v", err)
	}
}
