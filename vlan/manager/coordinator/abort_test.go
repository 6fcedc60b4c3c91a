package coordinator_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// Two coordinators change the same nodes. The first has committed on one node and fails on the
// other; in between the second has prepared, and gives up later: the node goes back all the same.
func TestAbortWaitsForAnotherCoordinator(t *testing.T) {
	abortBesideAnother(t, 0, 0)
}

// It does so for longer than its lease, which says when managers refuse commits.
func TestAbortWaitsForLongerThanTheLease(t *testing.T) {
	abortBesideAnother(t, patience, patience+patience/20)
}

// abortBesideAnother has the second coordinator give up some time after the first one's abort has begun.
func abortBesideAnother(t *testing.T, lease, later time.Duration) {
	t.Helper()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 2, 3), t.TempDir())
	old, first := api.PlanID(n.Plan()), managertest.Turned(t, 2, 3, 1)
	second := &api.PrepareRequest{ID: "second", LeaseMS: 60_000, Plan: &api.Plan{Plan: *managertest.Turned(t, 2, 3, 2)}}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	other := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = api.Changed{}
		switch r.URL.Path {
		case "/v1/table":
			answer = tableOf(t, 1, 2, 3)
		case "/v1/commit":
			managertest.Eventually(t, "the first has committed", func() bool { return api.PlanID(n.Plan()) == api.PlanID(first) })
			if _, err := n.Client.Prepare(r.Context(), second, 0); err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusInternalServerError)
			answer = map[string]any{"error": api.Error{Code: "internal", Message: "its disk is full"}}
		case "/v1/abort": // asked at the same time as the other node
			begun := time.Now()
			managertest.Eventually(t, "the abort was refused", func() bool {
				_, metrics, _ := n.Ask(t, "GET", "/metrics", "")
				return refusals(metrics) > 0 && time.Since(begun) > later
			})
			if _, err := n.Client.Abort(r.Context(), second.ID, ""); err != nil {
				t.Error(err)
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}
	go func() { _ = other.Serve(l) }() // until the test ends
	client := manager.NewClient(manager.Addr{Network: "unix", Address: l.Addr().String()}, nil)
	t.Cleanup(func() { client.Close(); _ = other.Close() })
	r, err := coordinator.Apply(t.Context(), []*manager.Client{n.Client, client}, first, coordinator.ApplyOptions{Lease: lease})
	if err == nil || r.Nodes[0].State != coordinator.NodeBack || api.PlanID(n.Plan()) != old {
		t.Errorf("%v; %+v", err, r.Nodes[0])
	}
}

// refusals is how often a manager has refused a request because another change was prepared.
func refusals(metrics string) (n int) {
	_, count, _ := strings.Cut(metrics, "rawlane_manager_refused_total{code=\"busy\"} ")
	_, _ = fmt.Sscan(count, &n) // 0 of what has no such count
	return n
}
