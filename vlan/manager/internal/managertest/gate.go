package managertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
)

// Gate is a Drainer that notes what it drains, and the VID to a node before and after.
type Gate struct {
	Look   func() transport.VID
	Fail   error  // is returned in place of running the change
	Inside func() // runs before the change

	mu      sync.Mutex // guards what follows, and is held in a drain
	drained [][]transport.MAC
	seen    []transport.VID // before and after each change
}

// Drain implements manager.Drainer.
func (g *Gate) Drain(_ context.Context, change func() error, dst ...transport.MAC) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drained = append(g.drained, slices.Clone(dst))
	if g.Fail != nil {
		return g.Fail
	}
	if g.Inside != nil {
		g.Inside()
	}
	before := g.Look()
	err := change()
	g.seen = append(g.seen, before, g.Look())
	return err
}

// State returns what was drained, and the VIDs seen.
func (g *Gate) State() (drained [][]transport.MAC, seen []transport.VID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.drained), slices.Clone(g.seen)
}

// IsBusy reports whether a drain is under way.
func (g *Gate) IsBusy() bool {
	if g.mu.TryLock() {
		g.mu.Unlock()
		return false
	}
	return true
}

// DialDrained begins a session with a gate, which looks at node 2. Events may be nil.
func (n *Node) DialDrained(t testing.TB, timeout time.Duration, events chan manager.Event) (*manager.Session, *Gate) {
	t.Helper()
	d := manager.Dialer{DrainTimeout: timeout}
	if events != nil {
		d.OnEvent = func(e manager.Event) { events <- e }
	}
	s := n.Dial(t, d)
	g := &Gate{Look: func() transport.VID { return VID(s.Table(), 2) }}
	s.DrainWith(g)
	return s, g
}
