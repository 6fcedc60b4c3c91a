package manager_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
)

// gate is a Fencer that notes what it fences, and what the table was before and after.
type gate struct {
	mu     sync.Mutex
	fenced [][]transport.MAC
	look   func() transport.VID
	seen   []transport.VID // before and after each change
	fail   error           // instead of running the change
	inside func()          // before the change is run
}

func (g *gate) Drain(_ context.Context, change func() error, dst ...transport.MAC) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fenced = append(g.fenced, slices.Clone(dst))
	if g.fail != nil {
		return g.fail
	}
	if g.inside != nil {
		g.inside()
	}
	before := g.look()
	err := change()
	g.seen = append(g.seen, before, g.look())
	return err
}

func (g *gate) state() (fences int, seen []transport.VID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.fenced), slices.Clone(g.seen)
}

// fenced is a session with a gate, looking at node 2.
func fenced(t *testing.T, n *node, timeout time.Duration, events chan manager.Event) (*manager.Session, *gate) {
	g := &gate{}
	d := manager.Dialer{FenceTimeout: timeout}
	if events != nil {
		d.OnEvent = func(e manager.Event) { events <- e }
	}
	s := n.dial(t, d)
	g.look = func() transport.VID { return vid(s.Table(), 2) }
	s.FenceWith(g)
	return s, g
}

// Each change of the table, the program's own or another's, happens inside a fence, and no other time.
func TestFencedChanges(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s, g := fenced(t, n, 0, nil)
	if vid(s.Table(), 2) != 1 {
		t.Fatalf("VID %d at first, want the plan's", vid(s.Table(), 2))
	}
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil {
		t.Fatal(err)
	}
	if k, seen := g.state(); k != 1 || !slices.Equal(g.fenced[0], []transport.MAC{mac(2)}) || !slices.Equal(seen, []transport.VID{1, 3}) {
		t.Errorf("own change: fenced %v, VIDs %v", g.fenced, seen)
	}
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 3); err != nil { // what is so already
		t.Fatal(err)
	}
	if err := s.SetRoute(t.Context(), mac(1), mac(2), 2); err != nil { // others'
		t.Fatal(err)
	}
	if k, _ := g.state(); k != 1 {
		t.Errorf("%d fences, want none for what changes nothing here", k)
	}
	other := n.dial(t, manager.Dialer{})
	if err := other.SetRoute(t.Context(), mac(0), mac(2), 2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another's change", func() bool { k, seen := g.state(); return k == 2 && slices.Equal(seen, []transport.VID{1, 3, 3, 2}) })
	if _, err := n.SetPlan(cyclic(t, 3, 3), "node 3 goes"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new plan", func() bool { return len(s.Table().Routes()) == 3 })
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Unfenced != 0 {
		t.Errorf("%d changes were not fenced", st.Unfenced)
	}
}

// A change of the program's own whose fence fails is not made; another's is made all the same, and told of.
func TestFenceFails(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	events := make(chan manager.Event, 10)
	s, g := fenced(t, n, 0, events)
	silent := errors.New("node 2 does not answer")
	g.fail = silent
	if err := s.SetRoute(t.Context(), mac(0), mac(2), 3); !errors.Is(err, silent) || vid(s.Table(), 2) != 1 {
		t.Errorf("%v, VID %d", err, vid(s.Table(), 2))
	}
	if r, _ := n.Routes(); r[1].Tag.VID != 1 {
		t.Errorf("the manager has changed %v", r[1])
	}
	if _, err := n.client.SetPairs(t.Context(), []manager.Change{{A: mac(0), B: mac(2), VID: 2}}, "", 0); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != manager.EventUnfenced || !errors.Is(e.Err, silent) || vid(s.Table(), 2) != 2 || s.Stats().Unfenced != 1 {
		t.Errorf("event %+v, VID %d", e, vid(s.Table(), 2))
	}
}

// What a failover forces does not wait for a fence: what was sent by the dead path will not arrive.
func TestFailoverIsNotFenced(t *testing.T) {
	n := start(t, 0, cyclic(t, 4, 3), t.TempDir())
	s, g := fenced(t, n, time.Hour, nil)
	block := make(chan struct{})
	g.inside = func() { <-block }
	done := make(chan error)
	go func() { done <- s.SetRoute(t.Context(), mac(0), mac(1), 3) }() // its fence waits for a dead path
	eventually(t, "the fence is up", func() bool { return !g.mu.TryLock() || func() bool { g.mu.Unlock(); return false }() })
	if err := n.Force("silent", manager.Change{A: mac(0), B: mac(2), VID: 2}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failover's", func() bool { return vid(s.Table(), 2) == 2 })
	close(block)
	if err := <-done; err != nil || vid(s.Table(), 1) != 3 {
		t.Errorf("%v, VID %d", err, vid(s.Table(), 1))
	}
}

// Others push while the program changes its own: fences of both kinds get done, and all ends as the manager has it.
func TestFencedSessionsAtOnce(t *testing.T) {
	n := start(t, 0, cyclic(t, 6, 4), t.TempDir())
	var sessions []*manager.Session
	for range 4 {
		s, _ := fenced(t, n, 0, nil)
		sessions = append(sessions, s)
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			for k := range 50 {
				if err := s.SetRoute(t.Context(), mac(0), mac(1+(i+k)%5), transport.VID(1+(i*k)%4)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	awaitRoutes(t, n, sessions)
}
