package coordinator_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// decided is what a control of four nodes and three VIDs has decided: by the cyclic plan the pair
// uses VID 2.
var decided = plan.Change{Pair: plan.Pair{A: 1, B: 2}, From: 2, To: 1}

// A plan that an operator has applied since a control has read the nodes is not undone by what it
// decides.
func TestControlDoesNotUndoAPlanThatCameMeanwhile(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 3)
	read := all[0].Plan()
	latest := managertest.Turned(t, 4, 3, 1)
	if _, err := coordinator.Apply(t.Context(), clients, latest, coordinator.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.CarryOut(t.Context(), clients, read, decided); !errors.Is(err, api.ErrChanged) {
		t.Errorf("%v, want that the plan has changed", err)
	}
	for k, n := range all {
		if api.PlanID(n.Plan()) != api.PlanID(latest) {
			t.Errorf("node %d has not kept the operator's plan", k)
		}
	}
}

// What an operator has set for a pair outlasts a control's changes of others.
func TestControlKeepsTheOperatorsPairs(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 3)
	pair := api.Change{A: managertest.MAC(0), B: managertest.MAC(3), VID: 3} // by the plan 1
	for _, k := range []int{0, 3} {
		if _, err := clients[k].SetPairs(t.Context(), []api.Change{pair}, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := coordinator.CarryOut(t.Context(), clients, all[0].Plan(), decided); err != nil {
		t.Fatal(err)
	}
	for _, ends := range [][2]int{{0, 3}, {3, 0}, {1, 2}, {2, 1}} {
		want := map[int]transport.VID{0: 3, 3: 3, 1: decided.To, 2: decided.To}[ends[0]]
		if vid, _ := all[ends[0]].VIDs(managertest.MAC(ends[1])); vid != want {
			t.Errorf("%d to %d: VID %d, want %d", ends[0], ends[1], vid, want)
		}
	}
}

// Routes that a program or a failover has taken off the plan to a node which cannot be read are no
// change of a plan's, and do not hold up changes of other pairs. A plan without their VID is one.
func TestControlChangesOthersWhileANodeIsAway(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 4)
	away := managertest.MAC(3)
	if err := all[0].Override("no answer", api.Change{A: managertest.MAC(0), B: away, VID: 2}); err != nil {
		t.Fatal(err)
	}
	program := all[1].Dial(t, manager.Dialer{})
	if err := program.SetRoute(t.Context(), managertest.MAC(1), away, 4); err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.CarryOut(t.Context(), clients[:3], all[0].Plan(), decided); err != nil {
		t.Fatal(err)
	}
	for k, want := range []transport.VID{2, 4} {
		if vid, _ := all[k].VIDs(away); vid != want {
			t.Errorf("%d to the node that is away: VID %d, want %d", k, vid, want)
		}
	}
	fewer := managertest.RoundRobin(t, 4, 4) // and no other pair changes
	fewer.VIDs, fewer.Nodes[3].VID = fewer.VIDs[:3], 1
	if _, err := coordinator.Apply(t.Context(), clients[:3], fewer, coordinator.ApplyOptions{}); !errors.Is(err, api.ErrOneSided) {
		t.Errorf("a plan that drops them: %v", err)
	}
}
