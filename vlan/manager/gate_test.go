package manager_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// gate is a Drainer that notes what it drains, and the VID to a node before and after.
type gate struct {
	look   func() transport.VID
	fail   error  // is returned in place of running the change
	inside func() // runs before the change

	mu      sync.Mutex // guards what follows, and is held in a drain
	drained [][]transport.MAC
	seen    []transport.VID // before and after each change
}

// Drain implements manager.Drainer.
func (g *gate) Drain(_ context.Context, change func() error, dst ...transport.MAC) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drained = append(g.drained, slices.Clone(dst))
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

// state returns what was drained, and the VIDs seen.
func (g *gate) state() (drained [][]transport.MAC, seen []transport.VID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.drained), slices.Clone(g.seen)
}

// isBusy reports whether a drain is under way.
func (g *gate) isBusy() bool {
	if g.mu.TryLock() {
		g.mu.Unlock()
		return false
	}
	return true
}

// dialDrained begins a session with a gate, which looks at node 2. Events may be nil.
func dialDrained(
	t testing.TB, n *managertest.Node, timeout time.Duration, events chan manager.Event,
) (*manager.Session, *gate) {
	t.Helper()
	d := manager.Dialer{DrainTimeout: timeout}
	if events != nil {
		d.OnEvent = func(e manager.Event) { events <- e }
	}
	s := n.Dial(t, d)
	g := &gate{look: func() transport.VID { return managertest.VID(s.Table(), 2) }}
	s.DrainWith(g)
	return s, g
}

// awaitRoutes waits until all sessions have their manager's routes.
func awaitRoutes(t testing.TB, n *managertest.Node, sessions []*manager.Session) {
	t.Helper()
	managertest.Eventually(t, "all have the manager's routes", func() bool {
		want, _ := n.Routes()
		for _, s := range sessions {
			if !slices.Equal(s.Table().Routes(), want) {
				return false
			}
		}
		return true
	})
}
