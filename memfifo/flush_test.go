package memfifo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// slow is a link that delays every frame by 0.3 s; the peer timeout is not reached.
var slow = fault.Config{Delay: 1, DelayMin: 300 * time.Millisecond, DelayMax: 300 * time.Millisecond}

// A second Flush does not return before the first, whose fence it could rely on.
func TestFlush_OfTwoAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, slow, 0, 64)
		must(t, r.Put(ctx, 0, []byte{1}))
		go func() { _ = c.domains[0].Flush(ctx) }()
		synctest.Wait() // it waits for the answer
		must(t, c.domains[0].Flush(ctx))
		if w.Bytes()[0] != 1 {
			t.Error("flushed, and not in place")
		}
	})
}

// Flush waits for records, however they were pushed.
func TestFlush_OfEveryPush(t *testing.T) {
	long := make([]byte, 5000) // of several frames
	for name, push := range map[string]func(ctx context.Context, r *memfifo.Remote) error{
		"Push":                     func(ctx context.Context, r *memfifo.Remote) error { return r.Push(ctx, []byte{1}) },
		"Push, of a long record":   func(ctx context.Context, r *memfifo.Remote) error { return r.Push(ctx, long) },
		"PushBatch":                func(ctx context.Context, r *memfifo.Remote) error { return r.PushBatch(ctx, []byte{1}, []byte{2}) },
		"PushBatch, of a long one": func(ctx context.Context, r *memfifo.Remote) error { return r.PushBatch(ctx, []byte{1}, long) },
		"PushBatch, of long ones":  func(ctx context.Context, r *memfifo.Remote) error { return r.PushBatch(ctx, long, long) },
		"PushBatch, and Push later": func(ctx context.Context, r *memfifo.Remote) error {
			return errors.Join(r.PushBatch(ctx, long), r.Push(ctx, nil))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, slow, 0)
			ctx := limit(t)
			q := c.fifo(t, 1, 20_000)
			must(t, push(ctx, c.domains[0].Remote(q.Key())))
			must(t, c.domains[0].Flush(ctx))
			before := q.Len()
			time.Sleep(10 * time.Second)
			if after := q.Len(); before == 0 || before != after {
				t.Errorf("%s: flushed, and %d bytes are there; %d later", name, before, after)
			}
		})
	}
}

// A Flush that was given up leaves the flushing to the next one.
func TestFlush_AfterOneThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, slow, 0, 64)
		must(t, r.Put(ctx, 0, []byte{1}))
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if err := c.domains[0].Flush(soon); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "node 1") {
			t.Errorf("%v: want that node 1 has not answered", err)
		}
		must(t, c.domains[0].Flush(ctx))
		if w.Bytes()[0] != 1 {
			t.Error("flushed, and not in place")
		}
	})
}

// Flush waits also for an atomic operation whose caller has given up.
func TestFlush_AfterACallThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, slow, 0, 64)
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := r.FetchAdd(soon, 0, 5); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		must(t, c.domains[0].Flush(ctx))
		if v, _ := w.Load(0); v != 5 {
			t.Errorf("flushed, and the word is %d", v)
		}
		if n := c.domains[0].Counters().Orphans; n != 1 {
			t.Errorf("%d answers that nobody waits for, want 1", n)
		}
	})
}

// A loss is reported once. The next Flush has nothing to ask.
func TestFlush_TellsALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		must(t, r.Put(ctx, 0, []byte{1}))
		must(t, c.domains[0].Flush(ctx))
		c.faults[1].Cut(true)
		must(t, r.Put(ctx, 0, []byte{2}))
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		if err := r.Put(ctx, 0, []byte{3}); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("a Put before the loss was told: %v", err)
		}
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("the first Flush: %v", err)
		}
		begun := time.Now()
		if err := c.domains[0].Flush(ctx); err != nil || time.Since(begun) > 0 {
			t.Errorf("the second Flush: %v, after %v", err, time.Since(begun))
		}
	})
}

// A loss that a failed call has reported needs no Flush.
func TestFlush_IsNotNeededAfterACallThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		c.faults[1].Cut(true)
		if _, err := r.FetchAdd(ctx, 0, 1); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%v", err)
		}
		c.faults[1].Cut(false)
		if _, err := r.FetchAdd(ctx, 0, 1); err != nil {
			t.Errorf("the node is there again: %v", err)
		}
		must(t, c.domains[0].Flush(ctx))
	})
}

// Refusals are reported once, with their number.
func TestFlush_CountsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		for range 1000 {
			must(t, r.Put(ctx, 60, make([]byte, 5)))
		}
		var access *memfifo.AccessError
		if err := c.domains[0].Flush(ctx); !errors.As(err, &access) || access.Count != 1000 {
			t.Errorf("%v: want 1000 refusals", err)
		}
		must(t, c.domains[0].Flush(ctx))
	})
}

// Config.Refused is told of each refusal, with how many there were of its window since the last Flush,
// before a Flush returns, also of two at a time, of which one has the error.
func TestFlush_TellsConfigRefusedFirst(t *testing.T) {
	const each = 10
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, _ := twoNodes(t, fault.Config{}, 0, 64)
		must(t, c.domains[0].Close())
		told := map[uint16]int{}
		d, err := memfifo.Open(c.eps[0], memfifo.Config{Refused: func(e *memfifo.AccessError) {
			if told[e.ID]++; e.Count != (told[e.ID]-1)%each+1 {
				t.Errorf("the %d-th of id %d is told as the %d-th since a Flush", told[e.ID], e.ID, e.Count)
			}
			if e.Node != 1 || e.Reason != memfifo.OutOfRange && e.ID == w.Key().ID {
				t.Errorf("told of %v", e)
			}
		}})
		must(t, err)
		c.domains[0] = d
		r := d.Remote(w.Key())
		unknown := d.Remote(memfifo.Key{Node: 1, ID: 1000, Secret: 1})
		for flushes := range 2 {
			for range each {
				must(t, r.Put(ctx, 60, make([]byte, 5)))
				must(t, unknown.Put(ctx, 0, []byte{1}))
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _ = d.Flush(ctx); told[1000] != (flushes+1)*each || told[w.Key().ID] != (flushes+1)*each {
						t.Errorf("behind a Flush it was told of %v, want of each %d times", told, (flushes+1)*each)
					}
				})
			}
			both.Wait()
		}
	})
}

// It is told of each once, also if it ends its goroutine, and what is behind the refusals goes on.
func TestFlush_RefusedThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, _ := twoNodes(t, fault.Config{}, 0, 64)
		must(t, c.domains[0].Close())
		var told []int
		d, err := memfifo.Open(c.eps[0], memfifo.Config{Refused: func(e *memfifo.AccessError) {
			told = append(told, e.Count)
			runtime.Goexit()
		}})
		must(t, err)
		c.domains[0] = d
		r := d.Remote(w.Key())
		bad := memfifo.Segment{Off: 60, Data: make([]byte, 5)}
		must(t, r.PutV(ctx, bad, bad, bad))
		time.Sleep(time.Second) // so that the link's own goroutine is told
		if _, err := r.FetchAdd(ctx, 0, 1); err != nil {
			t.Error(err)
		}
		access, ok := errors.AsType[*memfifo.AccessError](d.Flush(ctx))
		if !ok || access.Count != 3 || fmt.Sprint(told) != "[1 2 3]" {
			t.Errorf("%v; told of %v, want 1 to 3 refusals", access, told)
		}
	})
}

// Each window of which something was refused is named, with how often; of very many some.
func TestFlush_NamesEachWindow(t *testing.T) {
	const most = 64
	for ids, want := range map[int]int{1: 1, 3: 3, most: most, 200: most} {
		synctest.Test(t, func(t *testing.T) {
			c, ctx, _, _ := twoNodes(t, fault.Config{}, 0, 64)
			d := c.domains[0]
			for id := range ids {
				r := d.Remote(memfifo.Key{Node: 1, ID: uint16(1000 + id), Secret: 1})
				for range 2 {
					must(t, r.Put(ctx, 0, []byte{1}))
				}
			}
			seen, count := map[uint16]bool{}, 0
			var look func(err error)
			look = func(err error) {
				if joined, ok := err.(interface{ Unwrap() []error }); ok {
					for _, e := range joined.Unwrap() {
						look(e)
					}
					return
				}
				if e, ok := errors.AsType[*memfifo.AccessError](err); ok {
					seen[e.ID] = true
					count += e.Count
				}
			}
			look(d.Flush(ctx))
			if len(seen) != want || count != 2*ids {
				t.Errorf("%d windows: %d are named, with %d refusals; want %d and %d", ids, len(seen), count, want, 2*ids)
			}
			must(t, d.Flush(ctx))
		})
	}
}

// A Flush whose context ends names the node that has not answered, though its send queue is full,
// and not the others.
func TestFlush_NamesOnlyTheNodesThatHaveNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		c.full(t, 1) // at node 1
		for _, k := range []int{1, 2, 3} {
			w := c.window(t, k, 1<<20)
			r := d.Remote(w.Key())
			if k == 1 {
				must(t, d.Post(&memfifo.Parcel{To: r, Data: make([]byte, 1<<20)})) // more than its window
				continue
			}
			must(t, r.Put(ctx, 0, []byte{1}))
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		err := d.Flush(soon)
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "node 1 has not answered: context deadline exceeded" {
			t.Errorf("%v", err)
		}
		begun := time.Now()
		if err := d.Flush(ctx, 2, 3); err != nil || time.Since(begun) > 0 {
			t.Errorf("the others: %v, after %v", err, time.Since(begun))
		}
	})
}

func TestFlush_OfANodeThatTheTableDoesNotHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		err := c.domains[0].Flush(limit(t), 1, 7)
		if !errors.Is(err, mcd.ErrUnknownNode) || !strings.Contains(err.Error(), "node 7") {
			t.Errorf("%v", err)
		}
		must(t, c.domains[0].Flush(limit(t), 0, 1)) // this node itself, and one that it has never talked to
	})
}

// A loss that a Flush begins with is told by it, though another Flush tells it meanwhile.
func TestFlush_TwoTellALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		for k := 1; k <= 2; k++ {
			w := c.window(t, k, 64)
			must(t, d.Remote(w.Key()).Put(ctx, 0, []byte{1}))
		}
		must(t, d.Flush(ctx))
		w, err := c.domains[2].Register(2, make([]byte, 64), memfifo.All)
		must(t, err)
		c.faults[2].Cut(true)
		must(t, d.Remote(w.Key()).Put(ctx, 0, []byte{2}))
		time.Sleep(2 * memfifo.DefaultPeerTimeout)
		q := c.full(t, 1) // node 1 holds up what asks it
		all := make(chan error, 1)
		go func() { all <- d.Flush(ctx) }()
		synctest.Wait()
		if err := d.Flush(ctx, 2); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("the one Flush: %v", err)
		}
		_, err = q.Pop(ctx, make([]byte, 64))
		must(t, err)
		if err := <-all; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("the other Flush: %v", err)
		}
	})
}

// A node that is named twice is asked and told of once.
func TestFlush_OfANodeNamedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
		must(t, r.Signal(ctx))
		must(t, c.domains[0].Flush(ctx, 1, 1))
		c.faults[1].Cut(true)
		must(t, r.Signal(ctx))
		err := c.domains[0].Flush(ctx, 1, 0, 1)
		if !errors.Is(err, memfifo.ErrPeerDown) || strings.Count(err.Error(), "node 1") != 1 {
			t.Errorf("the silent node is named more or less than once: %v", err)
		}
		c.faults[1].Cut(false)
	})
}
