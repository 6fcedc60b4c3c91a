package mpi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// freedUntold has rank 1 free so many windows alone, and a communicator, while it has no room to say
// so of the windows. f is rank 0, which has locked all of each.
func freedUntold(t *testing.T, n int, f func(ctx context.Context, d *Comm, all []*Win[int64]) error) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		freed := make(chan struct{})
		inBoth(t, func(c *Comm) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			d, err := c.Dup(ctx)
			if err == nil {
				err = d.Barrier(ctx)
			}
			all := make([]*Win[int64], n)
			for k := range all {
				if err == nil {
					all[k], err = NewWin(ctx, c, make([]int64, 4))
				}
				if err == nil {
					err = all[k].LockAll(ctx)
				}
			}
			if err := errors.Join(err, c.Barrier(ctx)); err != nil {
				return err
			}
			if c.Rank() == 0 {
				<-freed
				return f(ctx, d, all)
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			for _, v := range all {
				if err := v.UnlockAll(ctx); err != nil {
					return err
				}
				c.w.mu.Lock()
				v.members[0].busy = true // as while there is no room
				c.w.mu.Unlock()
				if v.Free(over) == nil {
					t.Error("a window is not freed alone")
				}
			}
			if d.Free(over) == nil {
				t.Error("the communicator is not freed alone")
			}
			close(freed)
			time.Sleep(time.Second)
			for _, v := range all {
				v.send(v.members[0], true)
			}
			return nil
		}, w, other)
		closeTwo(t, w, other)
	})
}

// Two goroutines put, and flush: both are told that what they put is refused.
func TestWin_TwoFlushesOfARefusal(t *testing.T) {
	freedUntold(t, 1, func(ctx context.Context, _ *Comm, all []*Win[int64]) error {
		var put, both sync.WaitGroup
		put.Add(2)
		for k := range 2 {
			both.Go(func() {
				err := all[0].Put(ctx, []int64{1}, 1, k)
				put.Done()
				put.Wait()
				err = errors.Join(err, all[0].Flush(ctx, 1))
				if !errors.Is(err, ErrFreed) {
					t.Errorf("goroutine %d: its Put was refused, its Flush says %v", k, err)
				}
			})
		}
		both.Wait()
		return nil
	})
}

// A barrier of another communicator, which rank 1 has left, asks whether that is there, and leaves the
// window's Flush what it is to tell of.
func TestWin_BarrierLeavesARefusal(t *testing.T) {
	freedUntold(t, 1, func(ctx context.Context, d *Comm, all []*Win[int64]) error {
		if err := all[0].Put(ctx, []int64{1}, 1, 0); err != nil {
			return err
		}
		left := d.Barrier(ctx)
		if err := all[0].Flush(ctx, 1); !errors.Is(err, ErrFreed) {
			t.Errorf("the Put was refused, Flush says %v (barrier: %v)", err, left)
		}
		return nil
	})
}
