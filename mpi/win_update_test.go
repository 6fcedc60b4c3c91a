package mpi_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Each update does what it says, on elements of each kind, at other processes and at oneself.
func TestWin_Updates(t *testing.T) {
	type named int16
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		checkUpdates[int8](t, c, 12, 10, true, true)
		checkUpdates[named](t, c, 12, 10, true, true)
		checkUpdates[int32](t, c, 12, 10, true, true)
		checkUpdates[int](t, c, 12, 10, true, true)
		checkUpdates[uint8](t, c, 12, 10, true, true)
		checkUpdates[uint16](t, c, 12, 10, true, true)
		checkUpdates[uint32](t, c, 12, 10, true, true)
		checkUpdates[uint](t, c, 12, 10, true, true)
		checkUpdates[float32](t, c, 12, 10, true, false)
		checkUpdates[float64](t, c, 12, 10, true, false)
		checkUpdates[complex64](t, c, 12, 10, false, false)
		checkUpdates[complex128](t, c, 12, 10, false, false)
	})
}

func checkUpdates[T mpi.Element](t *testing.T, c *mpi.Comm, a, b T, isOrdered, isInteger bool) {
	t.Helper()
	ctx := t.Context()
	memory := []T{0, 1}
	w := newWin(t, c, memory)
	if c.Rank() == 1 {
		must(t, c.Barrier(ctx))
		must(t, w.Free(ctx))
		return
	}
	for rank := range 2 {
		must(t, w.Lock(ctx, rank, mpi.Exclusive))
		for _, u := range []struct {
			u    mpi.Update
			want T
			is   bool
		}{
			{mpi.Add, 22, true},
			{mpi.Multiply, 120, true},
			{mpi.Minimum, 10, isOrdered},
			{mpi.Maximum, 12, isOrdered},
			{mpi.And, 8, isInteger},
			{mpi.Or, 14, isInteger},
			{mpi.Xor, 6, isInteger},
			{mpi.Replace, 10, true},
			{mpi.Keep, 12, true},
		} {
			must(t, w.Accumulate(ctx, []T{a}, rank, 1, mpi.Replace))
			old, err := w.FetchAndOp(ctx, b, rank, 1, u.u)
			if (err == nil) != u.is {
				t.Errorf("%T, %v: %v", a, u.u, err)
			}
			if !u.is {
				continue
			}
			now, err := w.FetchAndOp(ctx, 0, rank, 1, mpi.Keep)
			must(t, err)
			if old != a || now != u.want {
				t.Errorf("%T %v %v %v is %v (was %v), want %v", a, a, u.u, b, now, old, u.want)
			}
		}
		old, err := w.CompareAndSwap(ctx, 11, 13, rank, 1) // it is 12
		must(t, err)
		same, err := w.CompareAndSwap(ctx, 12, 14, rank, 1)
		must(t, err)
		buf := make([]T, 2)
		must(t, w.Get(ctx, buf, rank, 0))
		if old != 12 || same != 12 || !slices.Equal(buf, []T{0, 14}) {
			t.Errorf("%T at rank %d: %v, %v, %v", a, rank, old, same, buf)
		}
		must(t, w.Unlock(ctx, rank))
	}
	must(t, c.Barrier(ctx))
	must(t, w.Free(ctx))
}

// Updates of one element by many goroutines of all processes are one behind the other: no two get
// the same number, none is missing; so with a compare and swap, which is tried until it succeeds.
func TestWin_UpdatesAreAtomic(t *testing.T) {
	for _, faults := range []fault.Config{{}, lossy} {
		const n, goroutines, each = 3, 3, 20
		var mu sync.Mutex
		got, swapped := map[int64]int{}, 0
		bubble(t, n, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx := t.Context()
			memory := make([]int64, 2)
			w := newWin(t, c, memory)
			must(t, w.LockAll(ctx))
			var all sync.WaitGroup
			for range goroutines {
				all.Go(func() {
					for range each {
						number, err := w.FetchAndOp(ctx, 1, 1, 0, mpi.Add)
						must(t, err)
						for old := int64(0); ; {
							was, err := w.CompareAndSwap(ctx, old, old+1, 1, 1)
							if must(t, err); was == old {
								break
							}
							old = was
						}
						mu.Lock()
						got[number]++
						swapped++
						mu.Unlock()
					}
				})
			}
			all.Wait()
			must(t, w.UnlockAll(ctx))
			must(t, w.Fence(ctx))
			if want := int64(n * goroutines * each); c.Rank() == 1 && (memory[0] != want || memory[1] != want) {
				t.Errorf("%v, want %d", memory, want)
			}
			must(t, w.Free(ctx))
		})
		if len(got) != n*goroutines*each || swapped != len(got) {
			t.Errorf("%d different numbers, of %d", len(got), swapped)
		}
	}
}

// Updates of more elements than a frame holds are made whole, and each element once, also those
// whose old values come back.
func TestWin_LongUpdates(t *testing.T) {
	const size = 50_000
	bubble(t, 3, lossy, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		memory := make([]float64, size)
		w := newWin(t, c, memory)
		data, old := make([]float64, size), make([]float64, size)
		for k := range data {
			data[k], old[k] = float64(k+1), math.NaN()
		}
		must(t, w.Fence(ctx))
		must(t, w.Accumulate(ctx, data, 0, 0, mpi.Add))
		must(t, w.Fence(ctx))
		if c.Rank() == 1 {
			must(t, w.GetAccumulate(ctx, data, old, 0, 0, mpi.Multiply))
		}
		must(t, w.Fence(ctx))
		if c.Rank() == 2 {
			must(t, w.GetAccumulate(ctx, nil, old, 0, 0, mpi.Keep))
		}
		must(t, w.Fence(ctx))
		for k := range data {
			sum := 3 * data[k]
			switch {
			case c.Rank() == 0 && memory[k] != sum*data[k], c.Rank() == 1 && old[k] != sum, c.Rank() == 2 && old[k] != sum*data[k]:
				t.Fatalf("rank %d, element %d: %v, %v", c.Rank(), k, memory[k], old[k])
			}
		}
		must(t, w.Free(ctx))
	})
}
