package coordinator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
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

// awayChange is of a pair whose nodes are there while node 3 is away: by the cyclic plan it uses
// VID 2.
var awayChange = plan.Change{Pair: plan.Pair{A: 1, B: 2}, From: 2, To: 1}

// expectPlans checks that the nodes have these plans.
func expectPlans(t *testing.T, all []*managertest.Node, want ...string) {
	t.Helper()
	for k, n := range all {
		var got string
		if p := n.Plan(); p != nil {
			got = api.PlanID(p)
		}
		if got != want[min(k, len(want)-1)] {
			t.Errorf("node %d has plan %q, want %q", k, got, want[min(k, len(want)-1)])
		}
	}
}

// A node that was away while a control changed the plan comes back with the one before, or with
// none, and is given that of the others. What operators have set on these stays.
func TestControlGivesThePlanToANodeThatWasAway(t *testing.T) {
	for _, state := range []string{"kept", "lost"} {
		t.Run(state, func(t *testing.T) {
			all, clients := managertest.StartAll(t, 4, 2)
			before := api.PlanID(all[0].Plan())
			control := beginControl(t, clients)
			all[3].Stop()
			control.Pass(t.Context())
			if err := control.CarryOut(t.Context(), awayChange); err != nil {
				t.Fatal(err)
			}
			present := api.PlanID(all[0].Plan())
			pair := api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 2} // by the plan 1
			for _, k := range []int{0, 2} {
				if _, err := clients[k].SetPairs(t.Context(), []api.Change{pair}, "", 0); err != nil {
					t.Fatal(err)
				}
			}
			if state == "lost" {
				before = ""
				if err := os.Remove(filepath.Join(all[3].Dir, "state")); err != nil {
					t.Fatal(err)
				}
			}
			all[3] = managertest.Start(t, 3, nil, all[3].Dir)
			control.Pass(t.Context()) // it may be a change under way
			expectPlans(t, all, present, present, present, before)
			control.Pass(t.Context())
			expectPlans(t, all, present)
			if vid, _ := all[0].VIDs(managertest.MAC(2)); vid != 2 {
				t.Errorf("the operator's pair uses VID %d, want 2", vid)
			}
			control.Pass(t.Context())
			if log := control.Log.String(); strings.Count(log, "nodes had an earlier plan") != 1 || strings.Contains(log, "level=ERROR") {
				t.Errorf("it says: %s", log)
			}
		})
	}
}

// A plan that a control does not know, as one that others are about to apply, is left alone.
func TestControlLeavesAPlanOfOthersAlone(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	first, other := api.PlanID(all[0].Plan()), managertest.Turned(t, 4, 2, 1)
	control := beginControl(t, clients)
	if _, err := all[3].SetPlan(other, ""); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		control.Pass(t.Context())
	}
	expectPlans(t, all, first, first, first, api.PlanID(other))
	if log := control.Log.String(); !strings.Contains(log, "nothing is changed until all nodes have one plan") {
		t.Errorf("it says: %s", log)
	}
}

// A node that keeps the plan of a change which the others have taken back, as its answer was lost,
// is given theirs.
func TestControlTakesBackAPlanThatWasNotMade(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 2)
	first := all[0].Plan()
	control := beginControl(t, clients)
	other := &api.PrepareRequest{ID: "another coordinator's", LeaseMS: 60000, Plan: &api.Plan{Plan: *managertest.Turned(t, 4, 2, 1)}}
	if _, err := clients[3].Prepare(t.Context(), other, 0); err != nil {
		t.Fatal(err)
	}
	if err := control.CarryOut(t.Context(), awayChange); !errors.Is(err, api.ErrBusy) {
		t.Fatal(err)
	}
	if _, err := clients[3].Abort(t.Context(), other.ID, ""); err != nil {
		t.Fatal(err)
	}
	tried, err := first.With(map[plan.Pair]transport.VID{awayChange.Pair: awayChange.To})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].SetPlan(tried, ""); err != nil {
		t.Fatal(err)
	}
	control.Pass(t.Context())
	control.Pass(t.Context())
	expectPlans(t, all, api.PlanID(first))
}
