package memfifo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// slow is a link on which everything takes a second, or nothing; the limit is not reached.
var slow = fault.Config{Delay: 1, DelayMin: 300 * time.Millisecond, DelayMax: 300 * time.Millisecond}

// What two flush is flushed for both: the second one does not return before the first.
func TestFlush_OfTwoAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, slow, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		must(t, c.domains[0].Remote(w.Key()).Put(ctx, 0, []byte{1}))
		go func() { _ = c.domains[0].Flush(ctx) }()
		synctest.Wait() // it waits for the answer
		must(t, c.domains[0].Flush(ctx))
		if w.Bytes()[0] != 1 {
			t.Error("flushed, and not in place")
		}
	})
}

// A Flush that was given up has not flushed: the next one does.
func TestFlush_AfterOneThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, slow, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		must(t, c.domains[0].Remote(w.Key()).Put(ctx, 0, []byte{1}))
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

// An operation on a word whose answer nobody waited for any more is in place, too.
func TestFlush_AfterACallThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, slow, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := c.domains[0].Remote(w.Key()).FetchAdd(soon, 0, 5); !errors.Is(err, context.DeadlineExceeded) {
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

// A loss is told once. The next Flush asks nobody.
func TestFlush_TellsALossOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		r := c.domains[0].Remote(w.Key())
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

// Who was told by a call that failed need not be told by Flush.
func TestFlush_IsNotNeededAfterACallThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		r := c.domains[0].Remote(w.Key())
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

// A refusal is told once, with how many there were.
func TestFlush_CountsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w, err := c.domains[1].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		r := c.domains[0].Remote(w.Key())
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
