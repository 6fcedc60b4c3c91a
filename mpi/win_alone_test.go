package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A window whose fence has failed is freed alone: others that go on with it hear that, and do not
// wait.
func TestWin_FreedBehindAFence(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		w := newWin(t, c, make([]int64, 1))
		if c.Rank() == 0 {
			short, end := context.WithTimeout(ctx, time.Second)
			defer end()
			for range 2 { // it stays so
				if err := w.Fence(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("fence: %v", err)
				}
			}
			if err := w.Free(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("free: %v", err)
			}
			time.Sleep(2 * time.Minute)
			return
		}
		time.Sleep(2 * time.Second)
		_ = w.Fence(ctx) // may be over
		if down := c.Failed(); down != nil {
			t.Errorf("ranks %v are taken for down", down)
		}
		if err := w.Lock(ctx, 0, mpi.Shared); !errors.Is(err, mpi.ErrFreed) {
			t.Errorf("lock: %v", err)
		}
		if err := w.Free(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("free: %v", err)
		}
	})
}

// What Flush has confirmed is there, also if the owner frees the window meanwhile.
func TestWin_FlushOfFreed(t *testing.T) {
	for k := 0; k < 300; k += enough(1, 10) {
		bubble(t, 2, fault.Config{Delay: 1, DelayMax: time.Millisecond}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx := t.Context()
			memory := make([]int64, 1)
			w := newWin(t, c, memory)
			if c.Rank() == 0 {
				must(t, w.Lock(ctx, 1, mpi.Shared))
				done := int64(0)
				for w.Accumulate(ctx, []int64{1}, 1, 0, mpi.Add) == nil && w.Flush(ctx, 1) == nil {
					done++
				}
				must(t, mpi.Send(ctx, c, []int64{done}, 1, 0))
				time.Sleep(time.Minute)
				return
			}
			short, end := context.WithTimeout(ctx, 100*time.Millisecond+time.Duration(k)*97*time.Microsecond)
			defer end()
			_ = w.Free(short)
			done := make([]int64, 1)
			_, err := mpi.Recv(ctx, c, done, 0, 0)
			must(t, err)
			if memory[0] < done[0] || done[0] == 0 {
				t.Errorf("%d updates are confirmed, %d are here", done[0], memory[0])
			}
			time.Sleep(time.Minute)
		})
	}
}

// A group may be empty, and has each rank once.
func TestWin_Groups(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		must(t, w.Post())
		must(t, w.Start(ctx))
		if err := w.Post(0); !errors.Is(err, mpi.ErrEpoch) {
			t.Errorf("a second exposure: %v", err)
		}
		must(t, w.Complete())
		must(t, w.Wait(ctx))
		if err := errors.Join(w.Complete(), w.Wait(ctx)); !errors.Is(err, mpi.ErrEpoch) {
			t.Errorf("without an epoch: %v", err)
		}
		if err := w.Post(0, 0); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("post twice: %v", err)
		}
		if err := w.Start(ctx, 0, 0); !errors.Is(err, mpi.ErrRank) {
			t.Errorf("start twice: %v", err)
		}
		if err := w.Lock(ctx, 0, mpi.LockMode(77)); err == nil {
			t.Error("a lock of no mode")
		}
		must(t, w.Free(ctx))
	})
}
