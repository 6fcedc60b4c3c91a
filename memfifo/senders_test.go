package memfifo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// downs returns the nodes that a *SendersDownError names, with the reasons.
func downs(t *testing.T, err error) map[mcd.NodeID]memfifo.Reason {
	t.Helper()
	e, ok := errors.AsType[*memfifo.SendersDownError](err)
	if !ok || !errors.Is(err, memfifo.ErrPeerDown) {
		t.Fatalf("%v, want a SendersDownError", err)
	}
	named := map[mcd.NodeID]memfifo.Reason{}
	for _, n := range e.Nodes {
		named[n.Node] = n.Reason
	}
	return named
}

// Pop of a FIFO, and waits for a window, end once the last expected sender is down, having said
// which were before; what is in the FIFO comes first.
func TestExpect_PopNamesTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 0)
		ctx := limit(t)
		q, w := c.fifo(t, 0, 1<<10), c.window(t, 0, 64)
		must(t, q.Expect(1, 2, 2))
		must(t, w.Expect(1, 2))
		for k := 1; k <= 3; k++ { // node 3 is not expected, and its life changes nothing
			r := c.domains[k].Remote(q.Key())
			must(t, r.Push(ctx, []byte{byte(k)}))
			must(t, c.domains[k].Flush(ctx))
		}
		if d := q.Down(); len(d) > 0 {
			t.Errorf("all are up, and %v are down", d)
		}
		begun := time.Now()
		c.faults[1].Cut(true)
		waits := make(chan error, 3)
		go func() { _, err := w.Wait(ctx, 0); waits <- err }()
		go func() { _, err := w.WaitWord(ctx, 0, func(v uint64) bool { return v > 0 }); waits <- err }()
		time.Sleep(3 * memfifo.DefaultPeerTimeout)
		for _, d := range [][]*memfifo.PeerDownError{q.Down(), w.Down()} {
			if len(d) != 1 || d[0].Node != 1 || d[0].Reason != memfifo.Silent {
				t.Errorf("node 1 is cut off, and %v are down", d)
			}
		}
		var b [8]byte
		for range 3 {
			_, err := q.Pop(ctx, b[:])
			must(t, err)
		}
		go func() { _, err := q.Pop(ctx, b[:]); waits <- err }()
		synctest.Wait()
		if len(waits) > 0 {
			t.Fatalf("a wait has ended, and node 2 is up: %v", <-waits)
		}
		must(t, c.domains[2].Close())
		for range cap(waits) {
			if d := downs(t, <-waits); len(d) != 2 || d[1] != memfifo.Silent || d[2] != memfifo.Left {
				t.Errorf("%v are down", d)
			}
		}
		if took := time.Since(begun); took > 4*memfifo.DefaultPeerTimeout {
			t.Errorf("it took %v", took)
		}
		c.faults[1].Cut(false) // it was alone, and is back
		r := c.domains[1].Remote(q.Key())
		_ = r.Push(ctx, []byte{8}) // it has been given up: this is lost, and Flush says so
		if err := c.domains[1].Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Flush of a node that was given up: %v", err)
		}
		must(t, r.Push(ctx, []byte{9}))
		must(t, c.domains[1].Flush(ctx))
		if _, err := q.Pop(ctx, b[:]); err != nil || b[0] != 9 {
			t.Errorf("of a node that is back: %d, %v", b[0], err)
		}
		short, cancel := context.WithTimeout(ctx, 2*memfifo.DefaultPeerTimeout)
		defer cancel()
		if _, err := q.Pop(short, b[:]); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("node 1 is up again: %v", err)
		}
	})
}

// Without Expect, and after Expect of none, a dead sender ends no wait. Errors are told at once.
func TestExpect_OnlyWhereAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		q := c.fifo(t, 0, 1<<10)
		for _, expected := range [][]mcd.NodeID{nil, {1}} {
			must(t, q.Expect(expected...))
			must(t, q.Expect())
			c.faults[1].Cut(true)
			ctx, cancel := context.WithTimeout(limit(t), 3*memfifo.DefaultPeerTimeout)
			if _, err := q.Pop(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
		}
		for _, node := range []mcd.NodeID{0, 77} {
			if err := q.Expect(1, node); !errors.Is(err, mcd.ErrUnknownNode) {
				t.Errorf("Expect of node %d: %v", node, err)
			}
		}
		if err := q.Expect(0); err == nil || !strings.Contains(err.Error(), "this node itself") {
			t.Errorf("Expect of this node: %v", err)
		}
		must(t, q.Close())
		if err := q.Expect(1); !errors.Is(err, memfifo.ErrClosed) {
			t.Errorf("Expect of a closed FIFO: %v", err)
		}
	})
}

// Who is expected is asked, and not any more when others are expected in its place, or nobody, or the
// FIFO or window is closed.
func TestExpect_AsksNoLongerThanItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		q, w := c.fifo(t, 0, 1<<10), c.window(t, 0, 64)
		received := func(node int) uint64 {
			before := c.domains[node].Counters().Delivered
			time.Sleep(memfifo.DefaultPeerTimeout * 101 / 10) // not to the instant at which one is asked
			return c.domains[node].Counters().Delivered - before
		}
		for _, end := range []func() error{
			func() error { return q.Expect(2) },
			func() error { return q.Expect() },
			q.Close,
		} {
			must(t, q.Expect(1))
			must(t, w.Expect(1))
			if received(1) == 0 {
				t.Error("an expected node is not asked")
			}
			must(t, w.Expect())
			if n := received(1); n < 38 || n > 41 { // in ten timeouts, every quarter of one
				t.Errorf("a node that is expected by a FIFO still is asked %d times, want 40", n)
			}
			must(t, end())
			if n := received(1); n > 0 {
				t.Errorf("a node that is not expected any more is asked %d times", n)
			}
		}
		must(t, w.Expect(1))
		w.Revoke()
		if n := received(1); n > 0 {
			t.Errorf("a window that was revoked asks %d times", n)
		}
	})
}

// A handler asks those whom it expects, one by one, until Unexpect or its end.
func TestHandler_AsksNoLongerThanItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		h, err := c.domains[1].Handle(5, memfifo.HandlerConfig{Record: func(memfifo.Sender, []byte) {}})
		must(t, err)
		asked := func(want ...bool) {
			t.Helper()
			var before [3]uint64
			for i, d := range c.domains {
				before[i] = d.Counters().Delivered
			}
			time.Sleep(memfifo.DefaultPeerTimeout * 101 / 10) // not to the instant at which one is asked
			for i, node := range []int{0, 2} {
				if n := c.domains[node].Counters().Delivered - before[node]; (n > 0) != want[i] {
					t.Errorf("node %d is asked %d times", node, n)
				}
			}
		}
		must(t, h.Expect(0))
		must(t, h.Expect(2))
		must(t, h.Expect(0))
		asked(true, true)
		h.Unexpect(0)
		asked(false, true)
		c.faults[2].Cut(true)
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		c.faults[2].Cut(false) // it was down, and nobody is told of its return
		asked(false, false)
		must(t, h.Expect(2))
		asked(false, true)
		must(t, h.Close())
		asked(false, false)
	})
}

// Senders that live and say nothing stay up, however long the wait is, also if they are suspended
// for less than the timeout.
func TestExpect_QuietSendersAreUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		q := c.fifo(t, 0, 1<<10)
		must(t, q.Expect(1, 2))
		ctx, cancel := context.WithTimeout(limit(t), 20*memfifo.DefaultPeerTimeout)
		defer cancel()
		go func() {
			for range 10 {
				c.faults[1].Cut(true)
				time.Sleep(memfifo.DefaultPeerTimeout * 3 / 4)
				c.faults[1].Cut(false)
				time.Sleep(memfifo.DefaultPeerTimeout / 2)
			}
		}()
		if _, err := q.Pop(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || len(q.Down()) > 0 {
			t.Errorf("%v, %v", err, q.Down())
		}
	})
}

// The condition of WaitWord may use the domain, and Store.
func TestWaitWord_ConditionMayCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w := c.window(t, 0, 64)
		var putting sync.WaitGroup
		defer putting.Wait()
		putting.Go(func() {
			if err := c.domains[1].Remote(w.Key()).Put(ctx, 0, []byte{1, 1, 1, 1, 1, 1, 1, 1}); err != nil {
				t.Error(err)
			}
		})
		_, err := w.WaitWord(ctx, 0, func(v uint64) bool {
			must(t, w.Store(8, v))
			_ = c.domains[0].Counters()
			return v > 0
		})
		must(t, err)
	})
}

// Parcels that a peer does not acknowledge are bounded, and so is what they hold; once it has, more
// may be posted.
func TestPost_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		r := c.domains[0].Remote(c.window(t, 1, 64).Key())
		must(t, r.Signal(limit(t)))
		must(t, c.domains[0].Flush(limit(t)))
		c.faults[1].Cut(true)
		parcels := make([]*memfifo.Parcel, memfifo.MaxParcels+1)
		for i := range parcels {
			parcels[i] = &memfifo.Parcel{To: r, Data: []byte{1}}
		}
		if err := c.domains[0].Post(parcels...); !errors.Is(err, memfifo.ErrManyParcels) {
			t.Fatalf("Post of %d parcels: %v", len(parcels), err)
		}
		last := parcels[len(parcels)-1]
		c.faults[1].Cut(false)
		must(t, parcels[len(parcels)-2].WaitRemote(limit(t)))
		must(t, c.domains[0].Post(last))
		must(t, last.WaitRemote(limit(t)))
	})
}
