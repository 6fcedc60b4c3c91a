package coordinator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
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
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// cluster is the nodes of a network, with programs that send, as far as counters show.
type cluster struct {
	network  *topology.Topology
	nodes    []*managertest.Node
	clients  []*manager.Client
	sessions []*manager.Session
}

func newCluster(t *testing.T, spec string) *cluster {
	t.Helper()
	network, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{network: network}
	c.nodes, c.clients = managertest.StartAll(t, len(network.Hosts), len(network.VLANs))
	for _, n := range c.nodes {
		c.sessions = append(c.sessions, n.Dial(t, manager.Dialer{}))
	}
	return c
}

// send has pairs send to each other, both ways, at a rate, until the returned function is called.
func (c *cluster) send(rate topology.Rate, pairs ...plan.Pair) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := time.Now()
			bytes := int(float64(rate) / 8 * now.Sub(last).Seconds())
			last = now
			for _, p := range pairs {
				c.sessions[p.A].Table().Counter(managertest.MAC(p.B)).Add(1, bytes)
				c.sessions[p.B].Table().Counter(managertest.MAC(p.A)).Add(1, bytes)
			}
		}
	})
	return func() { cancel(); all.Wait() }
}

// awaitPeriods waits until a control has read node 0 in some periods.
func (c *cluster) awaitPeriods(t *testing.T, periods int) {
	t.Helper()
	requests := func() (n int) {
		_, metrics, _ := c.nodes[0].Ask(t, "GET", "/metrics", "")
		_, count, _ := strings.Cut(metrics, "\nrawlane_manager_requests_total ")
		if _, err := fmt.Sscan(count, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first, own := requests(), 0
	managertest.Eventually(t, "periods of the control", func() bool {
		own++
		return requests()-first-own >= 3*periods // table, counters, and the program's report
	})
}

// worst is the utilisation of the worst link if each pair sends a link's rate both ways by the plan
// in force on node 0.
func (c *cluster) worst(t *testing.T, pairs ...plan.Pair) float64 {
	t.Helper()
	var demand traffic.Matrix
	for from := range c.nodes {
		for to := range c.nodes {
			for _, p := range pairs {
				if p == plan.PairOf(from, to) {
					demand = append(demand, traffic.Flow{From: from, To: to, Rate: c.network.Links[0].Rate})
				}
			}
		}
	}
	plan := c.nodes[0].Plan()
	load, err := demand.Load(c.network, plan.PairVID)
	if err != nil {
		t.Fatal(err)
	}
	_, worst := load.MaxLink()
	return worst
}

// Two pairs that share a path are parted by what the counters show, on all nodes, with the reason
// in the logs; then nothing changes any more.
func TestVFREC_3_2_ControlPartsPairs(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2") // nodes 0, 1 and 2, 3 on a leaf each; two VIDs
	// By the cyclic plan 0-2 and 0-3 use VID 1, 1-2 and 1-3 VID 2: so let both pairs use VID 1.
	crowded, err := c.nodes[0].Plan().With(map[plan.Pair]transport.VID{{A: 0, B: 2}: 1, {A: 1, B: 3}: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := coordinator.Apply(t.Context(), c.clients, crowded, coordinator.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	pairs := []plan.Pair{{A: 0, B: 2}, {A: 1, B: 3}}
	if w := c.worst(t, pairs...); w != 2 {
		t.Fatalf("the worst link has %v, want 2", w)
	}
	stop := c.send(c.network.Links[0].Rate*9/20, pairs...)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	decided := make(chan []control.Decision, 100)
	done := make(chan error)
	var log syncBuffer
	go func() {
		done <- coordinator.Control(ctx, c.clients, coordinator.ControlOptions{
			Topology: c.network, Config: control.ControllerConfig{Period: 50 * time.Millisecond}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			OnChange: func(d []control.Decision, report *coordinator.Report, err error) {
				if err != nil || report == nil || report.Nodes[0].State != coordinator.NodeChanged {
					t.Errorf("%+v, %v", report, err)
				}
				decided <- d
			},
		})
	}()
	first := <-decided
	if len(first) != 1 || first[0].Reason != control.Relieve || first[0].Change.To != 2 {
		t.Errorf("decided %v", first)
	}
	if w := c.worst(t, pairs...); w != 1 {
		t.Errorf("the worst link has %v, want 1", w)
	}
	l, err := c.clients[3].Log(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if last := l.Entries[len(l.Entries)-1]; !strings.Contains(last.Reason, first[0].Why) {
		t.Errorf("the log says %q, want %q in it", last.Reason, first[0].Why)
	}
	_, version := c.nodes[0].Routes()
	c.awaitPeriods(t, 10) // in which nothing is to happen
	if _, again := c.nodes[0].Routes(); again != version || len(decided) != 0 {
		t.Errorf("it goes on changing: %v", <-decided)
	}
	if !strings.Contains(log.String(), "msg=decided change=") || !strings.Contains(log.String(), "made=true") {
		t.Errorf("it does not say that it has made a change: %s", log.String())
	}
	for _, not := range []string{"taken over", "another plan was applied"} { // it was this control's change
		if strings.Contains(log.String(), not) {
			t.Errorf("it says %q of its own change: %s", not, log.String())
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Control: %v", err)
	}
}

// What programs set for a pair is taken as it is, and logged with the reason.
func TestControlTellsOfChangesFromOutside(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2")
	pair := plan.Pair{A: 0, B: 2}
	to := 3 - c.nodes[0].Plan().PairVID(pair.A, pair.B)
	for _, n := range []int{pair.A, pair.B} {
		if err := c.sessions[n].SetRoute(t.Context(), managertest.MAC(pair.A), managertest.MAC(pair.B), to); err != nil {
			t.Fatal(err)
		}
	}
	stop := c.send(c.network.Links[0].Rate/20, pair)
	defer stop()
	told, log := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := coordinator.Control(ctx, c.clients, coordinator.ControlOptions{
			Topology: c.network, Config: control.ControllerConfig{Period: 50 * time.Millisecond},
			Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		log.Close() // ends the scan
		done <- err
	}()
	want := fmt.Sprintf("msg=\"taken over\" change=\"%v: VID %d -> %d\" why=", pair, 3-to, to)
	lines := bufio.NewScanner(told)
	for lines.Scan() && !strings.Contains(lines.Text(), want) {
	}
	if !strings.Contains(lines.Text(), want) {
		t.Errorf("the log ends without %s", want)
	}
	cancel()
	for lines.Scan() { // the log's writer must not wait
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the log: %v", err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Control: %v", err)
	}
}

func TestControlCannotBegin(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2")
	other, err := topology.Parse("vbft:4x4x4")
	if err != nil {
		t.Fatal(err)
	}
	if err := coordinator.Control(t.Context(), c.clients, coordinator.ControlOptions{}); err == nil || !strings.Contains(err.Error(), "no topology") {
		t.Errorf("without a topology: %v", err)
	}
	if err := coordinator.Control(t.Context(), nil, coordinator.ControlOptions{Topology: other}); err == nil || !strings.Contains(err.Error(), "no managers") {
		t.Errorf("without managers: %v", err)
	}
	if err := coordinator.Control(t.Context(), c.clients, coordinator.ControlOptions{Topology: other}); err == nil {
		t.Error("with another network's topology it began")
	}
	if _, err := c.nodes[2].SetPlan(managertest.Turned(t, 4, 2, 1), ""); err != nil {
		t.Fatal(err)
	}
	if err := coordinator.Control(t.Context(), c.clients, coordinator.ControlOptions{Topology: c.network}); err == nil || !strings.Contains(err.Error(), "have different plans") {
		t.Errorf("with different plans: %v", err)
	}
	c.nodes[3].Stop()
	if err := coordinator.Control(t.Context(), c.clients, coordinator.ControlOptions{Topology: c.network}); !errors.Is(err, api.ErrUnreachable) {
		t.Errorf("with a manager that is down: %v", err)
	}
}

// Others' plans are taken over, and a manager that is down for a while is waited for.
func TestControlGoesOn(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := make(chan error, 100)
	done := make(chan error, 1)
	var log syncBuffer
	go func() {
		done <- coordinator.Control(ctx, c.clients, coordinator.ControlOptions{
			Topology: c.network, Config: control.ControllerConfig{Period: 50 * time.Millisecond},
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			OnChange: func(_ []control.Decision, _ *coordinator.Report, err error) { changes <- err },
		})
	}()
	// It begins where all nodes have one plan: not in the midst of another change.
	managertest.Eventually(t, "it watches", func() bool { return strings.Contains(log.String(), "msg=watching") })
	pairs := []plan.Pair{{A: 0, B: 2}, {A: 1, B: 3}}
	stop := c.send(c.network.Links[0].Rate*9/20, pairs...)
	defer stop()
	crowded, err := c.nodes[0].Plan().With(map[plan.Pair]transport.VID{{A: 0, B: 2}: 2, {A: 1, B: 3}: 2})
	if err != nil {
		t.Fatal(err)
	}
	crowd := func() {
		t.Helper()
		for {
			_, err := coordinator.Apply(t.Context(), c.clients, crowded, coordinator.ApplyOptions{})
			if err == nil {
				return
			}
			if !errors.Is(err, api.ErrBusy) && !errors.Is(err, api.ErrChanged) { // the control's own change came first
				t.Fatal(err)
			}
		}
	}
	crowd()
	select {
	case err := <-changes:
		if err != nil {
			t.Error(err)
		}
	case err := <-done:
		t.Fatalf("Control: %v", err)
	}
	managertest.Eventually(t, "parted again", func() bool { return c.worst(t, pairs...) == 1 })

	c.nodes[3].Stop()
	c.awaitPeriods(t, 4) // in which one node cannot be read
	c.nodes[3] = managertest.Start(t, 3, nil, c.nodes[3].Dir)
	managertest.Eventually(t, "its program is back", func() bool { return c.sessions[3].Stats().Connected })
	crowd()
	managertest.Eventually(t, "parted once more", func() bool { return c.worst(t, pairs...) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Control: %v", err)
	}
}

// A manager that has stopped, and accepts connections without answering, does not hold a control up.
func TestControlDoesNotWaitForAStoppedManager(t *testing.T) {
	c := newCluster(t, "vbft:2x2x2")
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // its queue takes connections meanwhile
	stopped := manager.NewClient(manager.Addr{Network: "unix", Address: l.Addr().String()}, nil)
	defer stopped.Close()
	err = coordinator.Control(t.Context(), append(c.clients[:3:3], stopped), coordinator.ControlOptions{Topology: c.network})
	if !errors.Is(err, api.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrUnreachable after a while", err)
	}
}
