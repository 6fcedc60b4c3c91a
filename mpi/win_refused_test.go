package mpi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// freedUntold is a window that rank 1 has freed alone, while it has no room to say so: f is rank 0,
// which has locked all.
func freedUntold(t *testing.T, f func(ctx context.Context, a *Win[int64])) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		filled := make(chan struct{})
		inBoth(t, func(c *Comm) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			a, err := NewWin(ctx, c, make([]int64, 4))
			if err := errors.Join(err, a.LockAll(ctx), c.Barrier(ctx)); err != nil {
				return err
			}
			if c.Rank() == 1 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				if err := a.UnlockAll(ctx); err != nil {
					return err
				}
				c.w.mu.Lock()
				a.members[0].busy = true // as while there is no room
				c.w.mu.Unlock()
				if a.Free(over) == nil {
					t.Error("it is not freed alone")
				}
				close(filled)
				time.Sleep(time.Second)
				a.send(a.members[0], true)
				return nil
			}
			<-filled
			f(ctx, a)
			return nil
		}, w, other)
		closeTwo(t, w, other)
	})
}

// Two goroutines put, and flush: both are told that what they put is refused.
func TestWin_TwoFlushesOfARefusal(t *testing.T) {
	freedUntold(t, func(ctx context.Context, a *Win[int64]) {
		var put, both sync.WaitGroup
		put.Add(2)
		for k := range 2 {
			both.Go(func() {
				err := a.Put(ctx, []int64{1}, 1, k)
				put.Done()
				put.Wait()
				err = errors.Join(err, a.Flush(ctx, 1))
				if !errors.Is(err, ErrFreed) {
					t.Errorf("goroutine %d: its Put was refused, its Flush says %v", k, err)
				}
			})
		}
		both.Wait()
	})
}

// A barrier of another communicator, which rank 1 has left, asks whether that is there, and leaves the
// window's Flush what it is to tell of.
func TestWin_BarrierLeavesARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		filled := make(chan struct{})
		inBoth(t, func(c *Comm) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			a, err := NewWin(ctx, c, make([]int64, 4))
			if err := errors.Join(err, a.LockAll(ctx), d.Barrier(ctx), c.Barrier(ctx)); err != nil {
				return err
			}
			if c.Rank() == 1 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				if err := a.UnlockAll(ctx); err != nil {
					return err
				}
				c.w.mu.Lock()
				a.members[0].busy = true // as while there is no room
				c.w.mu.Unlock()
				if a.Free(over) == nil || d.Free(over) == nil {
					t.Error("they are not freed alone")
				}
				close(filled)
				time.Sleep(time.Second)
				a.send(a.members[0], true)
				return nil
			}
			<-filled
			if err := a.Put(ctx, []int64{1}, 1, 0); err != nil {
				return err
			}
			left := d.Barrier(ctx)
			if err := a.Flush(ctx, 1); !errors.Is(err, ErrFreed) {
				t.Errorf("the Put was refused, Flush says %v (barrier: %v)", err, left)
			}
			return nil
		}, w, other)
		closeTwo(t, w, other)
	})
}
