package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Two processes lock all, and two one rank each, and nobody anything beside it: none waits in a
// circle, in whatever order requests come.
func TestWin_LockAllBesideOthers(t *testing.T) {
	delays := fault.Config{Delay: 1, DelayMax: time.Millisecond}
	bubble(t, 4, delays, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		w := newWin(t, c, make([]int64, 1))
		for round := range 50 {
			must(t, c.Barrier(t.Context()))
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			var err error
			if at := c.Rank() - 2; at < 0 {
				if err = w.LockAll(ctx); err == nil {
					err = w.UnlockAll(ctx)
				}
			} else if err = w.Lock(ctx, at, mpi.Exclusive); err == nil {
				err = w.Unlock(ctx, at)
			}
			end()
			if err != nil {
				t.Errorf("rank %d, round %d: %v", c.Rank(), round, err)
				return
			}
		}
	})
}

// LockAll does not wait for others' locks where one of the processes is down.
func TestWin_LockAllOfADeadOne(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		switch c.Rank() {
		case 1:
			must(t, w.Lock(ctx, 1, mpi.Exclusive))
			must(t, c.Barrier(ctx))
			time.Sleep(time.Hour)
			must(t, w.Unlock(ctx, 1))
		case 2:
			must(t, c.Barrier(ctx))
			must(t, c.World().Close())
		case 0:
			must(t, c.Barrier(ctx))
			time.Sleep(time.Minute)
			begun := time.Now()
			err := w.LockAll(ctx)
			if down, ok := errors.AsType[*mpi.ProcessError](err); !ok || down.Rank != 2 || time.Since(begun) > time.Second {
				t.Errorf("after %v: %v, want that rank 2 is down, at once", time.Since(begun), err)
			}
		}
	})
}

// Behind a fence that has failed there are no epochs.
func TestWin_BehindABrokenFence(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		w := newWin(t, c, make([]int64, 1))
		if c.Rank() == 0 {
			short, end := context.WithTimeout(ctx, time.Second)
			defer end()
			if err := w.Fence(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("fence: %v", err)
			}
			for what, err := range map[string]error{
				"lock": w.Lock(ctx, 1, mpi.Exclusive), "lock of all": w.LockAll(ctx), "post": w.Post(1), "start": w.Start(ctx, 1),
			} {
				if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
					t.Errorf("%s: %v, want the fence's error", what, err)
				}
			}
		}
		time.Sleep(30 * time.Second)
	})
}
