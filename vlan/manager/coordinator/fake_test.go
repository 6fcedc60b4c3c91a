package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// fakeManager answers as a manager with a table, but for the requests that lose and refuse name.
func fakeManager(t *testing.T, table *api.Table, lose, refuse string) (client *manager.Client, asked func(path string) int) {
	t.Helper()
	var mu sync.Mutex
	count := make(map[string]int)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]any{
		"/v1/table": table, "/v1/health": api.Health{OK: true, PlanID: table.PlanID}, "/v1/counters": api.Counters{}, "/v1/prepare": api.Prepared{}, "/v1/commit": api.Committed{},
		"/v1/abort": api.Changed{}, "/v1/history": api.History{},
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		count[r.URL.Path]++
		mu.Unlock()
		switch r.URL.Path {
		case lose:
			panic(http.ErrAbortHandler)
		case refuse:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"error":{"code":"internal","message":"its disk is full"}}`))
			return
		}
		_ = json.NewEncoder(w).Encode(answers[r.URL.Path])
	})}
	go func() { _ = s.Serve(l) }() // until the test ends
	client = manager.NewClient(manager.Addr{Network: "unix", Address: l.Addr().String()}, nil)
	t.Cleanup(func() { client.Close(); _ = s.Close() })
	return client, func(path string) int { mu.Lock(); defer mu.Unlock(); return count[path] }
}

func tableOf(t *testing.T, k, nodes, vids int) *api.Table {
	p := managertest.RoundRobin(t, nodes, vids)
	return &api.Table{Schema: api.Schema, MAC: managertest.MAC(k), PlanID: api.PlanID(p), Plan: &api.Plan{Plan: *p}, Routes: api.RoutesOf(p.Routes(k))}
}

// patience is a lease in which a busy machine answers, and which a test can wait for.
const patience = 3 * time.Second

// A node that is lost in the second phase is named, as it may have the plan; the others go back.
func TestApplyNamesTheNodeThatIsLost(t *testing.T) {
	for _, lose := range []string{"/v1/commit", "/v1/prepare"} {
		n := managertest.Start(t, 0, managertest.RoundRobin(t, 2, 3), t.TempDir())
		old := api.PlanID(n.Plan())
		lost, asked := fakeManager(t, tableOf(t, 1, 2, 3), lose, "")
		r, err := coordinator.Apply(t.Context(), []*manager.Client{n.Client, lost}, managertest.Turned(t, 2, 3, 1),
			coordinator.ApplyOptions{Lease: patience})
		said := r.Nodes[1].Error // of the last commit, which the end of the lease may have met on its way
		silent := strings.Contains(said, "unreachable") || strings.Contains(said, "within the lease")
		if !errors.Is(err, api.ErrUnreachable) || !silent {
			t.Errorf("%s is lost: %v, %+v", lose, err, r.Nodes[1])
		}
		if asked("/v1/abort") == 0 {
			t.Errorf("%s is lost: it was not told to abort", lose)
		}
		if api.PlanID(n.Plan()) != old {
			t.Errorf("%s is lost: the other has not gone back", lose)
		}
		if lose == "/v1/prepare" && (r.Nodes[1].State != coordinator.NodeUnchanged || asked("/v1/commit") != 0) {
			t.Errorf("prepare is lost: %+v, %d commits", r.Nodes[1], asked("/v1/commit"))
		}
		if errors.Is(err, coordinator.ErrPlansDiffer) {
			t.Errorf("%s is lost: all have gone back, and yet: %v", lose, err)
		}
		if lose == "/v1/commit" && asked("/v1/commit") < 2 {
			t.Errorf("its commit was not asked for again")
		}
	}
}

// A node on which another plan was set over the change is not called back where it was.
func TestApplyNamesTheNodeThatHasAnotherPlanSince(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 2, 3), t.TempDir())
	third := managertest.Turned(t, 2, 3, 2)
	lost, _ := fakeManager(t, tableOf(t, 1, 2, 3), "/v1/commit", "")
	r, err := coordinator.Apply(t.Context(), []*manager.Client{beforeAborts(t, n, func() {
		if _, err := n.SetPlan(third, "the operator's"); err != nil {
			t.Error(err)
		}
	}), lost}, managertest.Turned(t, 2, 3, 1), coordinator.ApplyOptions{Lease: patience})
	if o := r.Nodes[0]; o.State != coordinator.NodeUnknown || !strings.Contains(o.Error, "it has another plan since, "+api.PlanID(third)) {
		t.Errorf("%+v", o)
	}
	if !errors.Is(err, coordinator.ErrPlansDiffer) || strings.Contains(err.Error(), "may be that of") {
		t.Errorf("%v", err)
	}
}

// beforeAborts is a client of a node by a proxy that calls f before it passes an abort on.
func beforeAborts(t *testing.T, n *managertest.Node, f func()) *manager.Client {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "manager"})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", n.Socket)
	}}
	proxy.Transport = transport
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "p"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/abort" {
			f()
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = s.Serve(l) }() // until the test ends
	c := manager.NewClient(manager.Addr{Network: "unix", Address: l.Addr().String()}, nil)
	t.Cleanup(func() { c.Close(); _ = s.Close(); transport.CloseIdleConnections() })
	return c
}

// A node that answers neither commit nor abort may have the plan, and is named.
func TestApplyNamesTheNodeThatIsGone(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 2, 3), t.TempDir())
	lost, _ := fakeManager(t, tableOf(t, 1, 2, 3), "/v1/commit", "/v1/abort")
	r, err := coordinator.Apply(t.Context(), []*manager.Client{n.Client, lost}, managertest.Turned(t, 2, 3, 1),
		coordinator.ApplyOptions{Lease: patience})
	if !errors.Is(err, coordinator.ErrPlansDiffer) || !strings.Contains(err.Error(), "may be that of "+managertest.MAC(1).String()) ||
		!strings.Contains(err.Error(), "its disk is full") || r.Nodes[1].State != coordinator.NodeUnknown || r.Nodes[0].State != coordinator.NodeBack {
		t.Errorf("%v; %+v", err, r.Nodes)
	}
}

// What keeps a node from telling its history is told, and not that it has none.
func TestPreviousTellsWhatIsWrong(t *testing.T) {
	lost, _ := fakeManager(t, tableOf(t, 0, 2, 3), "", "/v1/history")
	if _, _, err := coordinator.Previous(t.Context(), []*manager.Client{lost}); err == nil || !strings.Contains(err.Error(), "its disk is full") || errors.Is(err, api.ErrNoHistory) {
		t.Errorf("%v", err)
	}
	if _, _, err := coordinator.Previous(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no managers") {
		t.Errorf("of no managers: %v", err)
	}
}

// A control reads the tables of its nodes once, as long as their plan stays the same.
func TestControlReadsTablesOnlyWhenThePlanChanges(t *testing.T) {
	table := tableOf(t, 0, 2, 1)
	client, asked := fakeManager(t, table, "", "")
	if err := coordinator.ReadTwice(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if got := asked("/v1/table"); got != 1 {
		t.Errorf("the table was read %d times", got)
	}
	if got := asked("/v1/counters"); got != 2 {
		t.Errorf("the counters were read %d times", got)
	}
}

// A dry run says what would change, on each node and in all, and changes nothing.
func TestApplyDryRun(t *testing.T) {
	all, clients := managertest.StartAll(t, 4, 3)
	next := managertest.Turned(t, 4, 3, 1)
	for i := range next.Nodes {
		next.Nodes[i].Name = fmt.Sprint("n", i)
	}
	_, before := all[0].Routes()
	dry, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{DryRun: true})
	if err != nil || !dry.DryRun || dry.Pairs != 6 {
		t.Fatalf("%+v, %v", dry, err)
	}
	if _, after := all[0].Routes(); after != before {
		t.Error("it has changed something")
	}
	done, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{})
	if err != nil || done.DryRun || done.Pairs != dry.Pairs {
		t.Fatalf("%+v, %v", done, err)
	}
	for k, n := range dry.Nodes {
		if n.State != coordinator.NodeUnchanged || n.Routes != 3 || n.Name != fmt.Sprint("n", k) {
			t.Errorf("dry: %+v", n)
		}
		if d := done.Nodes[k]; d.State != coordinator.NodeChanged || d.Routes != 4 { // and the default
			t.Errorf("done: %+v", d)
		}
	}
	again, err := coordinator.Apply(t.Context(), clients, next, coordinator.ApplyOptions{DryRun: true})
	if err != nil || again.Pairs != 0 || again.Nodes[0].Routes != 0 {
		t.Errorf("what they have: %+v, %v", again, err)
	}
}

// A dry run with the manager of a node that the plan lacks is refused as the change would be.
func TestApplyDryRunOfANodeThatThePlanLacks(t *testing.T) {
	_, clients := managertest.StartAll(t, 3, 3)
	r, err := coordinator.Apply(t.Context(), clients, managertest.Turned(t, 2, 3, 1), coordinator.ApplyOptions{DryRun: true})
	if !errors.Is(err, plan.ErrUnknownNode) || r.Nodes[0].Routes != 1 || r.Nodes[2].Routes != 0 || r.Pairs != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A rollback is to the plan that the nodes had before, and to no other.
func TestRollbackIsToThePlanBefore(t *testing.T) {
	_, clients := managertest.StartAll(t, 2, 3)
	first, second := managertest.RoundRobin(t, 2, 3), managertest.Turned(t, 2, 3, 1)
	if _, err := coordinator.Apply(t.Context(), clients, second, coordinator.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.Apply(t.Context(), clients, managertest.Turned(t, 2, 3, 2), coordinator.ApplyOptions{Rollback: true}); !errors.Is(err, api.ErrChanged) {
		t.Errorf("to another: %v", err)
	}
	if _, err := coordinator.Apply(t.Context(), clients, first, coordinator.ApplyOptions{Rollback: true}); err != nil {
		t.Errorf("to the one before: %v", err)
	}
}

// A survey says which paths are down, and is an error then; of nodes that are well it is none.
func TestSurveySaysWhichPathsAreDown(t *testing.T) {
	all, clients := managertest.StartAll(t, 2, 3)
	if s := coordinator.Survey(t.Context(), clients); s.Err() != nil || s.Nodes[0].Failover || s.Nodes[0].PathsDown != 0 {
		t.Errorf("%+v, %v", s, s.Err())
	}
	all[0].ShowFailover(func() api.Failover { return api.Failover{Error: "no such interface"} })
	if err := coordinator.Survey(t.Context(), clients).Err(); !errors.Is(err, coordinator.ErrUnwell) || strings.Contains(err.Error(), "which paths") {
		t.Errorf("no path is down: %v", err)
	}
	all[0].ShowFailover(func() api.Failover {
		return api.Failover{Watching: true, Paths: []api.Path{{Peer: managertest.MAC(1), VID: 1, State: api.PathDown}}}
	})
	s := coordinator.Survey(t.Context(), clients)
	if !errors.Is(s.Err(), coordinator.ErrUnwell) || !strings.Contains(s.Err().Error(), "which paths") || errors.Is(s.Err(), coordinator.ErrPlansDiffer) {
		t.Errorf("%v", s.Err())
	}
	if n := s.Nodes[0]; !n.Failover || n.PathsDown != 1 || len(n.Unreachable) != 1 || s.Nodes[1].PathsDown != 0 {
		t.Errorf("%+v", s.Nodes)
	}
}

// What a node has prepared and is not told to forget ends with its lease: the others' errors do not
// wait for it.
func TestAbortDoesNotWaitForWhatALeaseEnds(t *testing.T) {
	lost, asked := fakeManager(t, tableOf(t, 0, 2, 3), "/v1/abort", "")
	refuses, _ := fakeManager(t, tableOf(t, 1, 2, 3), "", "/v1/prepare")
	_, err := coordinator.Apply(t.Context(), []*manager.Client{lost, refuses}, managertest.Turned(t, 2, 3, 1), coordinator.ApplyOptions{})
	if err == nil || !strings.Contains(err.Error(), "its disk is full") || asked("/v1/abort") != 1 || asked("/v1/commit") != 0 {
		t.Errorf("%v; %d aborts, %d commits", err, asked("/v1/abort"), asked("/v1/commit"))
	}
}
