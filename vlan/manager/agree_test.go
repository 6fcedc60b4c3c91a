package manager_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"

	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Equal plans have one id, however they came about; whatever is another in a plan makes another id.
func TestPlanID(t *testing.T) {
	base := func() *plan.Plan { return turned(t, 4, 3, 1) }
	id := manager.PlanID(base())
	if !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(id) {
		t.Errorf("id %q", id)
	}
	var text bytes.Buffer
	if _, err := base().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	again, err := plan.Parse("again", &text)
	if err != nil || manager.PlanID(again) != id {
		t.Errorf("written and read again: %s, %v; want %s", manager.PlanID(again), err, id)
	}
	ids := map[string]string{"": "no plan", id: "the plan"}
	if manager.PlanID(nil) != "" {
		t.Errorf("no plan: %q", manager.PlanID(nil))
	}
	for what, change := range map[string]func(p *plan.Plan){
		"topology": func(p *plan.Plan) { p.Topology = "flat:4" },
		"vids":     func(p *plan.Plan) { p.VIDs = append(p.VIDs, 9) },
		"pcp":      func(p *plan.Plan) { p.PCP = 1 },
		"name":     func(p *plan.Plan) { p.Nodes[0].Name = "n" },
		"mac":      func(p *plan.Plan) { p.Nodes[0].MAC[1] = 1 },
		"vid":      func(p *plan.Plan) { p.Nodes[0].VID = p.Nodes[1].VID },
		"priority": func(p *plan.Plan) { p.Nodes[0].Priority = 1 },
		"order":    func(p *plan.Plan) { p.Nodes[0], p.Nodes[1] = p.Nodes[1], p.Nodes[0] },
		"pairs":    func(p *plan.Plan) { p.Pairs = map[plan.Pair]transport.VID{{A: 0, B: 1}: 3} },
	} {
		p := base()
		change(p)
		if other, taken := ids[manager.PlanID(p)]; taken {
			t.Errorf("with another %s it has the id of %s", what, other)
		}
		ids[manager.PlanID(p)] = "another " + what
	}
}

// apart leaves node 2 of three with the next plan, and the others with the old one: its manager dies when it has changed and before it says so.
func apart(t *testing.T) (all []*node, clients []*manager.Client, old, next *plan.Plan) {
	t.Helper()
	all, clients = nodes(t, 3, 3)
	old, next = cyclic(t, 3, 3), turned(t, 3, 3, 1)
	all[2].OnStep(func(step string) error {
		if step == "settle" { // behind the renaming
			return all[2].Kill()
		}
		return nil
	})
	_, err := manager.Apply(t.Context(), clients, next, manager.ApplyOptions{Lease: 200 * time.Millisecond, Reason: "better"})
	if !errors.Is(err, manager.ErrPlansDiffer) || !errors.Is(err, manager.ErrUnreachable) {
		t.Fatalf("Apply: %v; want ErrPlansDiffer and ErrUnreachable", err)
	}
	for _, want := range []string{"plan " + manager.PlanID(next), "may be that of 02:00:00:00:00:03 at unix:" + all[2].socket, "rawlane route apply again"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Apply: %v; want %q in it", err, want)
		}
	}
	dir := all[2].dir
	all[2].stop()
	all[2] = start(t, 2, nil, dir)
	clients[2] = all[2].client
	return all, clients, old, next
}

// A manager that dies between its own commit and the others' going back comes back with the new plan. Everybody who asks is told, by
// name; and to apply a plan again mends it.
func TestNodesThatDisagreeAreNamed(t *testing.T) {
	all, clients, old, next := apart(t)
	names := func(err error) {
		t.Helper()
		var differ *manager.PlansError
		if !errors.As(err, &differ) || !errors.Is(err, manager.ErrPlansDiffer) {
			t.Errorf("%v; want a PlansError", err)
			return
		}
		if p := differ.Plans; len(p) != 2 || p[0].ID != manager.PlanID(old) || len(p[0].Nodes) != 2 || p[1].ID != manager.PlanID(next) || p[1].Reason != "better" {
			t.Errorf("%+v", p)
		}
		if want := "(better): 02:00:00:00:00:03 at unix:" + all[2].socket + " (give all of them one: rawlane route apply)"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	s := manager.Survey(t.Context(), clients)
	names(s.Err())
	for k, n := range s.Nodes {
		want := old
		if k == 2 {
			want = next
		}
		if n.PlanID != manager.PlanID(want) || n.MAC != mac(k) || n.Error != "" {
			t.Errorf("node %d: %+v", k, n)
		}
		if h, err := clients[k].Health(t.Context()); err != nil || h.PlanID != n.PlanID {
			t.Errorf("node %d: health %+v, %v", k, h, err)
		}
		if _, metrics, _ := all[k].ask(t, "GET", "/metrics", ""); !strings.Contains(metrics, "\nrawlane_plan_info{id=\""+n.PlanID+"\"} 1\n") {
			t.Errorf("node %d: metrics %s", k, metrics)
		}
	}
	network, err := topology.Parse("vbft:3x3x1")
	if err != nil {
		t.Fatal(err)
	}
	names(manager.Control(t.Context(), clients, manager.ControlOptions{Topology: network}))

	r, err := manager.Apply(t.Context(), clients, next, manager.ApplyOptions{})
	if err != nil || r.PlanID != manager.PlanID(next) || r.Nodes[0].PlanBefore != manager.PlanID(old) || r.Nodes[2].PlanBefore != manager.PlanID(next) {
		t.Errorf("again: %+v, %v", r, err)
	}
	if err := manager.Survey(t.Context(), clients).Err(); err != nil {
		t.Errorf("mended: %v", err)
	}
}

// A rollback of all does not guess which plan is meant where nodes do not agree on the present one.
func TestPreviousNamesNodesThatDisagree(t *testing.T) {
	_, clients, old, _ := apart(t)
	if _, err := clients[0].SetPlan(t.Context(), turned(t, 3, 3, 2), "", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := clients[1].SetPlan(t.Context(), old, "", 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := manager.Previous(t.Context(), clients); err == nil {
		t.Error("it found a plan that all had before")
	}
	if _, err := clients[1].SetPlan(t.Context(), turned(t, 3, 3, 1), "", 0); err != nil {
		t.Fatal(err)
	}
	if back, _, err := manager.Previous(t.Context(), clients); err != nil || manager.PlanID(back) != manager.PlanID(old) {
		t.Errorf("all had one plan before: %v, %v", back, err)
	}
	if _, err := clients[0].SetPlan(t.Context(), turned(t, 3, 3, 1), "", 0); err != nil {
		t.Fatal(err)
	}
	_, _, err := manager.Previous(t.Context(), clients)
	if !errors.Is(err, manager.ErrPlansDiffer) || !strings.Contains(err.Error(), "before the present plan, managers have different plans") {
		t.Errorf("the same plan now, others before: %v", err)
	}
}

func TestSurveyNamesWhoDoesNotAnswer(t *testing.T) {
	all, clients := nodes(t, 2, 2)
	all[1].stop()
	s := manager.Survey(t.Context(), clients)
	if err := s.Err(); !errors.Is(err, manager.ErrUnreachable) || errors.Is(err, manager.ErrPlansDiffer) || !strings.Contains(err.Error(), all[1].socket) {
		t.Errorf("%v", err)
	}
	if s.Nodes[0].Error != "" || s.Nodes[1].Error == "" {
		t.Errorf("%+v", s.Nodes)
	}
	none := start(t, 5, nil, t.TempDir())
	s = manager.Survey(t.Context(), []*manager.Client{clients[0], none.client})
	if err := s.Err(); !errors.Is(err, manager.ErrPlansDiffer) || !strings.Contains(err.Error(), "no plan: 02:00:00:00:00:06 at ") {
		t.Errorf("one without a plan: %v", err)
	}
}

// Somebody who is just applying a plan is no trouble.
func TestControlTellsOnlyOfPlansThatStayDifferent(t *testing.T) {
	differ := &manager.PlansError{}
	if told := manager.Troubles(nil, differ, nil, differ, nil); told != "" {
		t.Errorf("for a period each: %s", told)
	}
	told := manager.Troubles(differ, differ, differ, nil)
	if n := strings.Count(told, "\n"); n != 2 || !strings.Contains(told, "level=ERROR") {
		t.Errorf("for three periods: %s", told)
	}
}

// While nodes have different plans a control changes nothing, and says so once, with their names.
func TestControlTellsOfNodesThatDisagree(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var log syncBuffer
	done := make(chan error)
	go func() {
		done <- manager.Control(ctx, c.clients, manager.ControlOptions{
			Topology: c.network, Config: control.ControllerConfig{Period: 20 * time.Millisecond}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
	}()
	eventually(t, "it has begun", func() bool {
		return strings.Contains(log.String(), "msg=watching nodes=4 plan="+manager.PlanID(cyclic(t, 4, 2)))
	})
	if _, err := c.nodes[3].SetPlan(turned(t, 4, 2, 1), "alone"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says so", func() bool {
		return strings.Contains(log.String(), "(alone): 02:00:00:00:00:04 at unix:"+c.nodes[3].socket)
	})
	if _, err := manager.Apply(t.Context(), c.clients, cyclic(t, 4, 2), manager.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it says that it is over", func() bool { return strings.Contains(log.String(), "all nodes can be read again, and have one plan") })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Control: %v", err)
	}
	if n := strings.Count(log.String(), "nothing is changed until all nodes have one plan"); n != 1 {
		t.Errorf("it said so %d times, want once:\n%s", n, log.String())
	}
}

// syncBuffer is written by one goroutine and read by another.
type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
