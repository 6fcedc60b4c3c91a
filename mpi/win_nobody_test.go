package mpi_test

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// At ProcNull all that is done with a window succeeds, and does nothing; so programs need no case of
// their own at the edge of a grid.
func TestWin_ProcNull(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		v, err := mpi.NewWin(ctx, c, []int{5})
		must(t, err)
		must(t, v.Lock(ctx, mpi.ProcNull, mpi.Exclusive))
		must(t, v.Put(ctx, []int{1}, mpi.ProcNull, 100))
		must(t, v.Get(ctx, []int{1}, mpi.ProcNull, 100))
		must(t, v.Accumulate(ctx, []int{1}, mpi.ProcNull, 100, mpi.Add))
		if old, err := v.FetchAndOp(ctx, 1, mpi.ProcNull, -3, mpi.Add); err != nil || old != 0 {
			t.Errorf("%d, %v", old, err)
		}
		must(t, v.Flush(ctx, mpi.ProcNull))
		must(t, v.Unlock(ctx, mpi.ProcNull))

		must(t, v.Post(mpi.ProcNull, 1-c.Rank(), mpi.ProcNull))
		must(t, v.Start(ctx, mpi.ProcNull, 1-c.Rank()))
		must(t, v.Put(ctx, []int{7}, 1-c.Rank(), 0))
		must(t, v.Complete())
		must(t, v.Wait(ctx))

		must(t, v.Fence(ctx))
		must(t, v.Free(ctx))
		for _, err := range []error{
			v.Lock(ctx, mpi.ProcNull, mpi.Shared), v.Unlock(ctx, mpi.ProcNull), v.Flush(ctx, mpi.ProcNull), v.Post(mpi.ProcNull),
		} {
			if !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("of one that was freed: %v", err)
			}
		}
	})
}

// A flush outside of an epoch is refused, as what it would flush is.
func TestWin_FlushOutsideAnEpoch(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		v, err := mpi.NewWin(ctx, c, []int{5})
		must(t, err)
		flushes := func(when string, rank int, one, all error) {
			t.Helper()
			if err := v.Flush(ctx, rank); !errors.Is(err, one) || one == nil && err != nil {
				t.Errorf("%s: Flush: %v, want %v", when, err, one)
			}
			if err := v.FlushAll(ctx); !errors.Is(err, all) || all == nil && err != nil {
				t.Errorf("%s: FlushAll: %v, want %v", when, err, all)
			}
		}
		flushes("at first", 1, mpi.ErrEpoch, mpi.ErrEpoch)
		must(t, v.Lock(ctx, 0, mpi.Shared))
		flushes("with a lock", 0, nil, nil)
		flushes("with another one's lock", 1, mpi.ErrEpoch, nil)
		must(t, v.Unlock(ctx, 0))
		flushes("without it", 0, mpi.ErrEpoch, mpi.ErrEpoch)
		must(t, v.LockAll(ctx))
		flushes("with all locks", 1, nil, nil)
		must(t, v.UnlockAll(ctx))
		must(t, v.Fence(ctx))
		flushes("behind a fence", 1, nil, nil)
		must(t, v.Fence(ctx))
		must(t, v.Free(ctx))
	})
}

// Empty data is none, as nil is, for an update that keeps what there is.
func TestWin_GetAccumulateOfNoData(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		v, err := mpi.NewWin(ctx, c, []int{5, 6})
		must(t, err)
		must(t, v.Fence(ctx))
		for _, data := range [][]int{nil, {}} {
			result := make([]int, 2)
			must(t, v.GetAccumulate(ctx, data, result, 0, 0, mpi.Keep))
			if result[0] != 5 || result[1] != 6 {
				t.Errorf("%v", result)
			}
		}
		must(t, v.Free(ctx))
	})
}
