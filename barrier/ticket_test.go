package barrier_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fault"
)

// incomplete enters a barrier whose context ends before it.
func incomplete(t *testing.T, g *barrier.Group) *barrier.IncompleteError {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := g.Barrier(ctx)
	var e *barrier.IncompleteError
	if !errors.As(err, &e) || !errors.Is(err, barrier.ErrIncomplete) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a barrier whose context ends: %v", err)
	}
	return e
}

// A barrier whose context ends names the missing nodes. Its ticket is in the error, and goes on.
func TestIncomplete_TheTicketGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 3, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: schedule.Concurrent()})
		e := incomplete(t, all[0])
		if !slices.Equal(e.Missing, []mcd.NodeID{1, 2}) || e.Number != 0 || e.Generation != 1 {
			t.Errorf("incomplete: %+v", e)
		}
		if done, err := e.Ticket.Done(); done || err != nil {
			t.Errorf("its ticket is done: %v, %v", done, err)
		}
		expectNone(t, each(all[1:], func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }))
		if err := e.Ticket.Wait(limit(t)); err != nil {
			t.Errorf("it was completed since: %v", err)
		}
		stages(t, all, 3, func(int, int) {})
	})
}

// A loop that calls Barrier until it returns nil goes through one barrier, whether that ends
// during a wait or between two.
func TestIncomplete_TheNextBarrierResumes(t *testing.T) {
	for _, pause := range []time.Duration{0, 50 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
			generations := []uint32{}
			var other sync.WaitGroup
			other.Go(func() {
				for range 3 {
					time.Sleep(2500 * time.Millisecond)
					if err := all[1].Barrier(limit(t)); err != nil {
						t.Error(err)
					}
				}
			})
			for len(generations) < 3 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				err := all[0].Barrier(ctx)
				cancel()
				if err == nil {
					trace, _ := all[0].Trace(0)
					generations = append(generations, trace.Generation)
				} else if !errors.Is(err, barrier.ErrIncomplete) {
					t.Fatal(err)
				}
				time.Sleep(pause)
			}
			other.Wait()
			if !slices.Equal(generations, []uint32{1, 2, 3}) {
				t.Errorf("pause %v: went through generations %v", pause, generations)
			}
		})
	}
}

// Arrive returns the pending barrier's ticket again until a wait has seen its end.
func TestIncomplete_ArriveResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
		incomplete(t, all[0])
		if err := all[1].Barrier(limit(t)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the first one has heard it, too
		for range 2 {
			if again := arrive(t, all[0], barrier.Options{}); again.Generation() != 1 {
				t.Fatalf("generation %d was entered, and the end of 1 not seen", again.Generation())
			}
		}
		if done, err := arrive(t, all[0], barrier.Options{}).Done(); !done || err != nil {
			t.Errorf("done: %v, %v", done, err)
		}
		if next := arrive(t, all[0], barrier.Options{}); next.Generation() != 2 {
			t.Errorf("generation %d, want 2", next.Generation())
		}
	})
}

// A resumed barrier that has failed meanwhile says so.
func TestIncomplete_ThenTheOtherDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		incomplete(t, all[0])
		_ = c.eps[1].Close()
		for range 2 {
			if err := all[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
				t.Errorf("%v", err)
			}
		}
	})
}

// Several goroutines wait with copies of one ticket. One gives up, and the others are woken by
// the end.
func TestWait_OfSeveralGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
		for range 3 {
			ticket := arrive(t, all[0], barrier.Options{})
			var waiting sync.WaitGroup
			for k := range 4 {
				waiting.Go(func() {
					if k == 0 {
						if err := ticket.Wait(shorter(t, limit(t), time.Millisecond)); !errors.Is(err, barrier.ErrIncomplete) {
							t.Errorf("the first one: %v", err)
						}
					} else if err := ticket.Wait(limit(t)); err != nil {
						t.Errorf("another one: %v", err)
					}
				})
				synctest.Wait() // in this order
			}
			time.Sleep(time.Second)
			if err := all[1].Barrier(limit(t)); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			waiting.Wait()
			if took := time.Since(begun); took > time.Millisecond {
				t.Errorf("the last one returned %v after the end", took)
			}
		}
	})
}

// Goroutines that wait for generation g return though another one enters g+1 as soon as g has
// ended.
func TestWait_WhileOthersGoOn(t *testing.T) {
	all := bare(t, 2).groups(t, barrier.GroupConfig{})
	const rounds = 2000
	var running sync.WaitGroup
	running.Go(func() {
		for range rounds {
			if err := all[1].Barrier(limit(t)); err != nil {
				t.Error(err)
			}
		}
	})
	for range rounds {
		ticket := arrive(t, all[0], barrier.Options{})
		running.Go(func() {
			if err := ticket.Wait(limit(t)); err != nil {
				t.Error(err)
			}
		})
		if err := ticket.Wait(limit(t)); err != nil {
			t.Error(err)
		}
	}
	running.Wait()
}

// A wait ends by its context with ErrIncomplete, or as the barrier did, and never with the bare
// error of the context: also where both end at the same time.
func TestWait_TheContextEndsWithTheBarrier(t *testing.T) {
	all := bare(t, 2).groups(t, barrier.GroupConfig{})
	for i := range 3000 {
		ticket := arrive(t, all[0], barrier.Options{})
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%60)*time.Microsecond)
		var other sync.WaitGroup
		other.Go(func() {
			if err := arrive(t, all[1], barrier.Options{}).Wait(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if err := ticket.Wait(ctx); err != nil && !errors.Is(err, barrier.ErrIncomplete) {
			t.Fatalf("%T %v", err, err)
		}
		cancel()
		if err := ticket.Wait(context.Background()); err != nil {
			t.Error(err)
		}
		other.Wait()
	}
}
