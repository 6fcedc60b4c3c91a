package manager_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// Each change of the table, the program's own or another's, happens inside a drain, and no other
// time.
func TestDrainedChanges(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s, g := dialDrained(t, n, 0, nil)
	if managertest.VID(s.Table(), 2) != 1 {
		t.Fatalf("VID %d at first, want the plan's", managertest.VID(s.Table(), 2))
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		t.Fatal(err)
	}
	if drained, seen := g.state(); len(drained) != 1 || !slices.Equal(drained[0], []transport.MAC{managertest.MAC(2)}) || !slices.Equal(seen, []transport.VID{1, 3}) {
		t.Errorf("own change: drained %v, VIDs %v", drained, seen)
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); err != nil { // what is so already
		t.Fatal(err)
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(1), managertest.MAC(2), 2); err != nil { // others'
		t.Fatal(err)
	}
	if drained, _ := g.state(); len(drained) != 1 {
		t.Errorf("%d drains, want one: the others change nothing here", len(drained))
	}
	other := n.Dial(t, manager.Dialer{})
	if err := other.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 2); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "another's change", func() bool {
		drained, seen := g.state()
		return len(drained) == 2 && slices.Equal(seen, []transport.VID{1, 3, 3, 2})
	})
	if _, err := n.SetPlan(managertest.RoundRobin(t, 3, 3), "node 3 goes"); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "a new plan", func() bool { return len(s.Table().Routes()) == 3 })
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Undrained != 0 {
		t.Errorf("%d changes were not drained", st.Undrained)
	}
}

// A change of the program's own whose drain fails is not made; another's is made all the same, and
// told of.
func TestDrainFails(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	events := make(chan manager.Event, 10)
	s, g := dialDrained(t, n, 0, events)
	silent := errors.New("node 2 does not answer")
	g.fail = silent
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); !errors.Is(err, silent) || managertest.VID(s.Table(), 2) != 1 {
		t.Errorf("%v, VID %d", err, managertest.VID(s.Table(), 2))
	}
	if r, _ := n.Routes(); r[1].Tag.VID != 1 {
		t.Errorf("the manager has changed %v", r[1])
	}
	if _, err := n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(2), VID: 2}}, "", 0); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != manager.EventUndrained || !errors.Is(e.Err, silent) || managertest.VID(s.Table(), 2) != 2 || s.Stats().Undrained != 1 {
		t.Errorf("event %+v, VID %d", e, managertest.VID(s.Table(), 2))
	}
}

// A failover's override does not wait for a drain: what was sent by the dead path will not arrive.
func TestFailoverIsNotDrained(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s, g := dialDrained(t, n, time.Hour, nil)
	block := make(chan struct{})
	g.inside = func() { <-block }
	done := make(chan error)
	go func() { done <- s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 3) }() // its drain waits for a dead path
	managertest.Eventually(t, "the drain is under way", g.isBusy)
	if err := n.Override("silent", api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 2}); err != nil {
		t.Fatal(err)
	}
	managertest.Eventually(t, "the failover's", func() bool { return managertest.VID(s.Table(), 2) == 2 })
	close(block)
	if err := <-done; err != nil || managertest.VID(s.Table(), 1) != 3 {
		t.Errorf("%v, VID %d", err, managertest.VID(s.Table(), 1))
	}
}

// Others push while the program changes its own: drains of both kinds get done, and all ends as the
// manager has it.
func TestDrainedSessionsAtOnce(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 6, 4), t.TempDir())
	var sessions []*manager.Session
	for range 4 {
		s, _ := dialDrained(t, n, 0, nil)
		sessions = append(sessions, s)
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			for k := range 50 {
				if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1+(i+k)%5), transport.VID(1+(i*k)%4)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	awaitRoutes(t, n, sessions)
}

// While a drain of the program's own covers a route, the stream's change of it waits for that drain; if
// the drain ends without installing it, the session's own loop does.
func TestALostAnswerIsInstalledLater(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s, g := dialDrained(t, n, 0, nil)
	fail := errors.New("the drain was given up")
	changed := false
	g.inside = func() {
		if changed {
			return
		}
		changed = true
		if _, err := n.Client.SetPairs(t.Context(), []api.Change{{A: managertest.MAC(0), B: managertest.MAC(2), VID: 2}}, "", 0); err != nil {
			t.Error(err)
		}
		_, version := n.Routes()
		managertest.Eventually(t, "the stream has told it", func() bool { return s.Stats().Version == version })
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fail)
	_ = s.SetRoute(ctx, managertest.MAC(0), managertest.MAC(2), 3) // refused: its context has ended
	managertest.Eventually(t, "the operator's change is in the table", func() bool { return managertest.VID(s.Table(), 2) == 2 })
}

// A pair may be given in both orders: it is drained once.
func TestDrainedPairInBothOrders(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s, g := dialDrained(t, n, 0, nil)
	a, b := managertest.MAC(0), managertest.MAC(2)
	if err := s.SetRoutes(t.Context(), api.Change{A: a, B: b, VID: 3}, api.Change{A: b, B: a, VID: 3}); err != nil {
		t.Error(err)
	}
	if drained, seen := g.state(); len(drained) != 1 || len(drained[0]) != 1 || !slices.Equal(seen, []transport.VID{1, 3}) {
		t.Errorf("drained %v, VIDs %v", drained, seen)
	}
}

// entrance is a Drainer that tells of each drain, and holds the first one up.
type entrance struct {
	begun  chan struct{}
	others atomic.Bool
	open   chan struct{}
}

// Drain implements manager.Drainer.
func (e *entrance) Drain(_ context.Context, change func() error, _ ...transport.MAC) error {
	e.begun <- struct{}{}
	if e.others.CompareAndSwap(false, true) {
		<-e.open
	}
	return change()
}

// A program that asks for what another source has asked for just before sends by it when SetRoute
// returns, though the drain of the other's change is still under way.
func TestSetRouteWaitsForTheSameChangeOfAnother(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	s := n.Dial(t, manager.Dialer{DrainTimeout: time.Minute})
	e := &entrance{begun: make(chan struct{}, 9), open: make(chan struct{})}
	open := sync.OnceFunc(func() { close(e.open) })
	defer open()
	s.DrainWith(e)
	change := api.Change{A: managertest.MAC(0), B: managertest.MAC(2), VID: 3}
	if _, err := n.Client.SetPairs(t.Context(), []api.Change{change}, "", 0); err != nil {
		t.Fatal(err)
	}
	<-e.begun // the operator's change waits in its drain
	if err := s.SetRoute(t.Context(), change.A, change.B, change.VID); err != nil {
		t.Error(err)
	}
	select {
	case <-e.begun: // it had a drain of its own
	default:
		t.Error("it has not waited")
	}
	if vid := managertest.VID(s.Table(), 2); vid != 3 {
		t.Errorf("SetRoute has returned, and frames go by VID %d, want 3", vid)
	}
}
