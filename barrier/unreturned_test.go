package barrier_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/noreturn"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// unreturned is a group of two nodes on a pipe, which polls for nobody. At node 0 the function of
// another port does not return.
type unreturned struct {
	cluster
	t      *testing.T
	groups []*barrier.Group
	to     mcd.Addr // the port at node 0
	from   *mcd.Port
	fails  atomic.Bool
}

func openUnreturned(t *testing.T, fail func()) *unreturned {
	x, y := linktest.Pipe()
	u := &unreturned{t: t}
	u.eps = mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: mcd.Config{Spin: time.Hour}}, []transport.Link{x}, []transport.Link{y})
	for _, e := range u.eps {
		u.services = append(u.services, service(t, e, barrier.Config{}))
	}
	t.Cleanup(func() { closeAll(u.services) })
	u.groups = u.cluster.groups(t, barrier.GroupConfig{})
	bad, err := u.eps[0].OpenPort(9, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if len(batch) > 0 && u.fails.Load() { // and not where polling stops
			fail()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if u.from, err = u.eps[1].OpenPort(9, mcd.PortOptions{}); err != nil {
		t.Fatal(err)
	}
	u.to = bad.Addr()
	return u
}

// left runs f, whose wait the function leaves.
func (u *unreturned) left(f func() error) {
	u.t.Helper()
	if err := u.from.Send(u.t.Context(), u.to, nil); err != nil {
		u.t.Fatal(err)
	}
	u.fails.Store(true)
	defer u.fails.Store(false)
	noreturn.Run(u.t, f)
}

// A Barrier that another port's function leaves is resumed by the next one, as one is whose context
// ended.
func TestBarrier_ThatDoesNotReturn(t *testing.T) {
	for name, fail := range noreturn.Ways {
		t.Run(name, func(t *testing.T) {
			u := openUnreturned(t, fail)
			u.left(func() error { return u.groups[0].Barrier(t.Context()) })
			u.left(func() error { return u.groups[0].Barrier(t.Context()) })
			var both sync.WaitGroup
			for node, g := range u.groups {
				both.Go(func() {
					if err := g.Barrier(t.Context()); err != nil {
						t.Errorf("node %d: %v", node, err)
					}
				})
			}
			both.Wait()
		})
	}
}

// A Close that another port's function leaves goes on to its end: waits end, and the port is free.
func TestClose_ThatDoesNotReturn(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, fail := range noreturn.Ways {
		for what, closer := range map[string]func(*unreturned) func() error{
			"group":   func(u *unreturned) func() error { return u.groups[0].Close },
			"service": func(u *unreturned) func() error { return u.services[0].Close },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				u := openUnreturned(t, fail)
				ticket := arrive(t, u.groups[0], barrier.Options{})
				u.left(closer(u))
				if err := ticket.Wait(over); !errors.Is(err, barrier.ErrClosed) {
					t.Errorf("a wait: %v, want %v", err, barrier.ErrClosed)
				}
				if err := u.services[0].Close(); err != nil {
					t.Error(err)
				}
				again, err := barrier.Open(u.eps[0], barrier.Config{})
				if err != nil {
					t.Fatal(err)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
