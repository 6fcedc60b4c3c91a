package mpi

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport/fault"
)

// leaving is a context that does in a wait what a function of another port's may do which the wait
// polls: it does not return.
type leaving struct {
	context.Context
	leave func()
}

func (c leaving) Done() <-chan struct{} { c.leave(); return nil }

// eachLeave runs a test for both ways not to return, in three processes. unreturned runs a call with
// a context by which its wait does not return.
func eachLeave(t *testing.T, test func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context)))) {
	for name, leave := range map[string]func(){"panic": func() { panic("by the test") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			freeing(t, 3, fault.Config{}, func(t *testing.T, worlds []*World, _ []*fault.Link, d []*Comm) {
				test(t, worlds, d, func(call func(context.Context)) {
					over := make(chan bool)
					go func() {
						defer close(over)
						defer func() { _ = recover() }()
						call(leaving{t.Context(), leave})
						t.Error("the call has returned")
					}()
					<-over
				})
			})
		})
	}
}

// Who waits with World.mu given back has it again where the wait does not return: nothing is
// unlocked twice, which would end the process, and nothing of the wait is left.
func TestUnreturned_ProbesAndWindows(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		win := make([]*Win[int], len(d))
		inBoth(t, func(c *Comm) (err error) {
			win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1))
			return err
		}, worlds...)
		unreturned(func(ctx context.Context) { _, _ = d[0].Probe(ctx, 1, 0) })
		unreturned(func(ctx context.Context) { _ = win[0].Start(ctx, 1) })
		if err := win[0].Post(1); err != nil {
			t.Fatal(err)
		}
		unreturned(func(ctx context.Context) { _ = win[0].Wait(ctx) })
		if len(worlds[0].probes) > 0 || len(win[0].waiters) > 0 {
			t.Errorf("%d probes and %d waits are left", len(worlds[0].probes), len(win[0].waiters))
		}
		inBoth(t, func(c *Comm) error { // the epoch goes on
			switch c.Rank() {
			case 0:
				return win[0].Wait(t.Context())
			case 1:
				return errors.Join(win[1].Start(t.Context(), 0), win[1].Complete())
			}
			return nil
		}, worlds...)
		unreturned(func(ctx context.Context) { _ = win[0].Fence(ctx) })
		if err := win[0].Fence(t.Context()); !errors.Is(err, errUnreturned) {
			t.Errorf("a fence behind one that has not returned: %v", err)
		}
		unreturned(func(ctx context.Context) { _ = win[1].Free(ctx) })
		if err := win[1].Free(t.Context()); !errors.Is(err, ErrFreed) {
			t.Errorf("a free behind one that has not returned: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := errors.Join(win[0].Free(ctx), win[2].Free(ctx)); ctx.Err() != nil || !errors.Is(err, ErrFreed) {
			t.Errorf("the others' free: %v", err)
		}
	})
}

// A lock whose wait does not return is not held, nor one of several: others have it.
func TestUnreturned_Locks(t *testing.T) {
	eachLeave(t, func(t *testing.T, worlds []*World, d []*Comm, unreturned func(func(context.Context))) {
		win := make([]*Win[int], len(d))
		inBoth(t, func(c *Comm) (err error) {
			win[c.Rank()], err = NewWin(t.Context(), d[c.Rank()], make([]int, 1))
			return errors.Join(err, win[c.Rank()].Fence(t.Context()))
		}, worlds...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		unreturned(func(ctx context.Context) { _ = win[0].Lock(ctx, 1, Exclusive) })
		unreturned(func(ctx context.Context) { _ = win[0].LockAll(ctx) })
		if len(win[0].calls) > 0 || win[0].holdsLock() {
			t.Errorf("%d calls are left; a lock is held: %t", len(win[0].calls), win[0].holdsLock())
		}
		for rank := range win {
			err := errors.Join(win[2].Lock(ctx, rank, Exclusive), win[2].Unlock(ctx, rank),
				win[0].Lock(ctx, rank, Exclusive), win[0].Unlock(ctx, rank))
			if err != nil {
				t.Error(err)
			}
		}
		inBoth(t, func(c *Comm) error { return win[c.Rank()].Free(ctx) }, worlds...)
	})
}
