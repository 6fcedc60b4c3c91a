package coordinator_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/control"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Equal plans have one id, however they came about; whatever is another in a plan makes another id.
func TestPlanID(t *testing.T) {
	base := func() *plan.Plan { return managertest.Turned(t, 4, 3, 1) }
	id := api.PlanID(base())
	if !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(id) {
		t.Errorf("id %q", id)
	}
	var text bytes.Buffer
	if _, err := base().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	again, err := plan.Parse("again", &text)
	if err != nil || api.PlanID(again) != id {
		t.Errorf("written and read again: %s, %v; want %s", api.PlanID(again), err, id)
	}
	ids := map[string]string{"": "no plan", id: "the plan"}
	if api.PlanID(nil) != "" {
		t.Errorf("no plan: %q", api.PlanID(nil))
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
		if other, taken := ids[api.PlanID(p)]; taken {
			t.Errorf("with another %s it has the id of %s", what, other)
		}
		ids[api.PlanID(p)] = "another " + what
	}
}

func TestSurveyNamesWhoDoesNotAnswer(t *testing.T) {
	all, clients := managertest.StartAll(t, 2, 2)
	all[1].Stop()
	s := coordinator.Survey(t.Context(), clients)
	if err := s.Err(); !errors.Is(err, api.ErrUnreachable) || errors.Is(err, coordinator.ErrPlansDiffer) || !strings.Contains(err.Error(), all[1].Socket) {
		t.Errorf("%v", err)
	}
	if s.Nodes[0].Error != "" || s.Nodes[1].Error == "" {
		t.Errorf("%+v", s.Nodes)
	}
	none := managertest.Start(t, 5, nil, t.TempDir())
	s = coordinator.Survey(t.Context(), []*manager.Client{clients[0], none.Client})
	if err := s.Err(); !errors.Is(err, coordinator.ErrPlansDiffer) || !strings.Contains(err.Error(), "no plan: 02:00:00:00:00:06 at ") {
		t.Errorf("one without a plan: %v", err)
	}
}

// Somebody who is just applying a plan is no trouble.
func TestControlTellsOnlyOfPlansThatStayDifferent(t *testing.T) {
	differ := &coordinator.PlansError{}
	if told := coordinator.Troubles(nil, differ, nil, differ, nil); told != "" {
		t.Errorf("for a period each: %s", told)
	}
	told := coordinator.Troubles(differ, differ, differ, nil)
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
		done <- coordinator.Control(ctx, c.clients, coordinator.ControlOptions{
			Topology: c.network, Config: control.ControllerConfig{Period: 20 * time.Millisecond}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
	}()
	managertest.Eventually(t, "it has begun", func() bool {
		return strings.Contains(log.String(), "msg=watching nodes=4 plan="+api.PlanID(managertest.RoundRobin(t, 4, 2)))
	})
	if _, err := c.nodes[3].SetPlan(managertest.Turned(t, 4, 2, 1), "alone"); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "it says so", func() bool {
		return strings.Contains(log.String(), "(alone): 02:00:00:00:00:04 at unix:"+c.nodes[3].Socket)
	})
	if _, err := coordinator.Apply(t.Context(), c.clients, managertest.RoundRobin(t, 4, 2), coordinator.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "it says that it is over", func() bool { return strings.Contains(log.String(), "all nodes can be read again, and have one plan") })
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

// What answers null, which package json takes for anything, is no manager.
func TestSurveyOfWhatAnswersNull(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("null\n")) }))
	defer other.Close()
	c := manager.NewClient(manager.Addr{Network: "tcp", Address: other.Listener.Addr().String()}, nil)
	defer c.Close()
	if err := coordinator.Survey(t.Context(), []*manager.Client{c}).Err(); !errors.Is(err, api.ErrProtocol) {
		t.Errorf("%v, want ErrProtocol", err)
	}
}
