package mpi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A window that one process could not make is freed for those that could.
func TestNewWin_MadeByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		var ranks sync.WaitGroup
		ranks.Go(func() {
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := NewWin(short, w.Comm(), make([]int64, 1)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("made late: %v", err)
			}
		})
		ranks.Go(func() {
			ctx := t.Context()
			v := &window{w: other, element: 8, memory: make([]byte, 8), calls: map[uint32]*call{}}
			v.kind, v.updater = updaterOf[int64]()
			var err error
			if v.comm, err = other.Comm().Dup(ctx); err != nil {
				t.Error(err)
			}
			key, err := v.lend()
			err = errors.Join(err, v.exchange(ctx, key))
			time.Sleep(2 * time.Second) // as a process that is not scheduled
			if err = errors.Join(err, v.comm.Barrier(ctx)); err != nil {
				t.Errorf("not made: %v", err)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err = v.Lock(short, 1-v.comm.Rank(), Shared); !errors.Is(err, ErrFreed) {
				t.Errorf("lock: %v", err)
			}
		})
		ranks.Wait()
		closeTwo(t, w, other)
	})
}

// What is fetched from a process whose frames are shorter comes in several.
func TestWin_FramesOfTwoLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		other.frame -= 200
		var ranks sync.WaitGroup
		for _, w := range []*World{w, other} {
			ranks.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				v, err := NewWin(ctx, w.Comm(), make([]int64, 3000))
				if err != nil {
					t.Error(err)
				}
				if w == other {
					time.Sleep(2 * time.Minute)
					if n := w.Counters().Malformed; n != 0 {
						t.Errorf("%d malformed", n)
					}
					return
				}
				_ = v.LockAll(ctx)
				if err := v.GetAccumulate(ctx, make([]int64, 3000), make([]int64, 3000), 1-w.Comm().Rank(), 0, Add); err != nil {
					t.Error(err)
				}
			})
		}
		ranks.Wait()
		closeTwo(t, w, other)
	})
}
