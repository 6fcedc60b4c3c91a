package coordinator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// beginControl begins a control of four nodes and two VIDs.
func beginControl(t *testing.T, clients []*manager.Client) *coordinator.Periods {
	t.Helper()
	network, err := topology.Parse("vbft:2x2x2")
	if err != nil {
		t.Fatal(err)
	}
	control, err := coordinator.BeginControl(t.Context(), clients, network)
	if err != nil {
		t.Fatal(err)
	}
	return control
}

// change is of a pair, and its reverse, whose nodes are there while node 3 is away: by the cyclic
// plan it uses VID 2.
var (
	awayPair  = plan.Pair{A: 1, B: 2}
	change    = plan.Change{Pair: awayPair, From: 2, To: 1}
	andBefore = plan.Change{Pair: awayPair, From: 1, To: 2}
)

// expectPlans checks that the nodes have these plans, the last one of all the others.
func expectPlans(t *testing.T, all []*managertest.Node, want ...string) {
	t.Helper()
	for k, n := range all {
		var got string
		if p := n.Plan(); p != nil {
			got = api.PlanID(p)
		}
		if w := want[min(k, len(want)-1)]; got != w {
			t.Errorf("node %d has plan %q, want %q", k, got, w)
		}
	}
}

// A node that was away, or has begun anew, and has another plan than the others since, is left
// alone: changes of the others' pairs go on, and it is told of.
func TestControlGoesOnWithoutANodeThatWasAway(t *testing.T) {
	for _, c := range []struct {
		name   string
		change bool // the others' plan, while it is away
		seen   bool // a period passes while it is away
		lost   bool // its state
		given  *plan.Plan
	}{
		{"with the plan of before", true, true, false, nil},
		{"with none", true, true, true, nil},
		{"with none, between two periods", false, false, true, nil},
		{"with another one, between two periods", false, false, true, managertest.Turned(t, 4, 2, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, clients := managertest.StartAll(t, 4, 2)
			control := beginControl(t, clients)
			control.Pass(t.Context())
			all[3].Stop()
			if c.seen {
				control.Pass(t.Context())
			}
			next := change
			if c.change {
				if err := control.CarryOut(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				next = andBefore
			}
			if c.lost {
				if err := os.Remove(filepath.Join(all[3].Dir, "state")); err != nil {
					t.Fatal(err)
				}
			}
			all[3] = managertest.Start(t, 3, c.given, all[3].Dir)
			for range 2 {
				control.Pass(t.Context())
			}
			if err := control.CarryOut(t.Context(), next); err != nil {
				t.Error(err)
			}
			if vid, _ := all[1].VIDs(managertest.MAC(2)); vid != next.To {
				t.Errorf("the others' pair uses VID %d, want %d", vid, next.To)
			}
			log := control.Log.String()
			if strings.Contains(log, "level=ERROR") || !strings.Contains(log, "it was away, and has") {
				t.Errorf("it says: %s", log)
			}
		})
	}
}

// What nodes bring back that were away is no plan that somebody has applied, while the others cannot
// be read; once all nodes have it, it is.
func TestControlDoesNotTakeOverAnEarlierPlanOfSome(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	control := beginControl(t, clients)
	first := all[3].Plan()
	all[3].Stop()
	control.Pass(t.Context())
	if err := control.CarryOut(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	second := api.PlanID(all[0].Plan())
	for _, n := range all[:3] {
		n.Stop()
	}
	all[3] = managertest.Start(t, 3, nil, all[3].Dir)
	for range 2 {
		control.Pass(t.Context())
	}
	if id := control.PlanID(); id != second {
		t.Errorf("it has taken over %s, want %s still", id, second)
	}
	for k := range all[:3] {
		all[k] = managertest.Start(t, k, nil, all[k].Dir)
	}
	control.Pass(t.Context())
	if err := control.CarryOut(t.Context(), andBefore); err != nil { // to the first plan again
		t.Error(err)
	}
	if err := control.CarryOut(t.Context(), change); err != nil {
		t.Error(err)
	}
	expectPlans(t, all, second, second, second, api.PlanID(first))

	if _, err := coordinator.Apply(t.Context(), clients, first, coordinator.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	control.Pass(t.Context())
	if id := control.PlanID(); id != api.PlanID(first) {
		t.Errorf("of all nodes it has not taken over %s", api.PlanID(first))
	}
}

// An earlier plan that most nodes bring back is that of before, too, while the one with the plan in
// force cannot be read.
func TestControlDoesNotTakeOverAnEarlierPlanOfMost(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	control := beginControl(t, clients)
	for _, n := range all[1:] {
		n.Stop()
	}
	control.Pass(t.Context())
	second := managertest.Turned(t, 4, 2, 1)
	if _, err := coordinator.Apply(t.Context(), clients[:1], second, coordinator.ApplyOptions{Partial: true}); err != nil {
		t.Fatal(err)
	}
	control.Pass(t.Context())
	all[0].Stop()
	for k := range all[1:] {
		all[k+1] = managertest.Start(t, k+1, nil, all[k+1].Dir)
	}
	for range 2 {
		control.Pass(t.Context())
	}
	if id := control.PlanID(); id != api.PlanID(second) {
		t.Errorf("it takes %s for the plan in force, want %s", id, api.PlanID(second))
	}
}

// A plan that others have applied while a control could read no node is taken over, though one of
// them does not come back.
func TestControlTakesOverAPlanThatCameWhileItReadNoNode(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	control := beginControl(t, clients)
	for _, n := range all {
		n.Stop()
	}
	control.Pass(t.Context())
	other := managertest.Turned(t, 4, 2, 1)
	for k := range all[:3] {
		all[k] = managertest.Start(t, k, nil, all[k].Dir)
		if _, err := all[k].SetPlan(other, ""); err != nil {
			t.Fatal(err)
		}
	}
	control.Pass(t.Context())
	if id := control.PlanID(); id != api.PlanID(other) {
		t.Errorf("it takes %s for the plan in force, want %s", id, api.PlanID(other))
	}
}

// Who applies an earlier plan again to nodes that were there all the time has it taken over, though
// another node is away.
func TestControlTakesOverAnEarlierPlanThatIsAppliedAgain(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	control := beginControl(t, clients)
	first := all[0].Plan()
	if err := control.CarryOut(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	all[3].Stop()
	control.Pass(t.Context())
	if _, err := coordinator.Apply(t.Context(), clients[:3], first, coordinator.ApplyOptions{Partial: true}); err != nil {
		t.Fatal(err)
	}
	control.Pass(t.Context())
	if id := control.PlanID(); id != api.PlanID(first) {
		t.Errorf("it takes %s for the plan in force, want %s", id, api.PlanID(first))
	}
}

// A plan that a few nodes bring back that were away, while the others cannot be read, is not taken
// over: the others count again once they can be.
func TestControlDoesNotTakeOverThePlanOfAFewThatWereAway(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	control := beginControl(t, clients)
	first := api.PlanID(all[0].Plan())
	for _, n := range all {
		n.Stop()
	}
	if err := os.Remove(filepath.Join(all[3].Dir, "state")); err != nil {
		t.Fatal(err)
	}
	all[3] = managertest.Start(t, 3, managertest.Turned(t, 4, 2, 1), all[3].Dir)
	for range 2 {
		control.Pass(t.Context())
	}
	if id := control.PlanID(); id != first {
		t.Errorf("it has taken over %s, want %s still", id, first)
	}
	for k := range all[:3] {
		all[k] = managertest.Start(t, k, nil, all[k].Dir)
	}
	control.Pass(t.Context())
	if err := control.CarryOut(t.Context(), change); err != nil {
		t.Error(err)
	}
}
