package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// An epoch of Start begins with its target's Post, and the target's Wait ends with the last Complete:
// each sees what the other has written before.
func TestWin_PostStartCompleteWait(t *testing.T) {
	for _, faults := range []fault.Config{{}, lossy} {
		const n, rounds, size = 4, 10, 2000
		bubble(t, n, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx, left, right := t.Context(), (c.Rank()+n-1)%n, (c.Rank()+1)%n
			memory, data, buf := make([]int64, 2*size), make([]int64, size), make([]int64, size)
			w := newWin(t, c, memory)
			for round := range int64(rounds) {
				memory[0] = round // that others read
				must(t, w.Post(left, right))
				must(t, w.Start(ctx, left, right))
				for k := range data {
					data[k] = round<<32 + int64(c.Rank())<<16 + int64(k)
				}
				must(t, w.Get(ctx, buf[:1], left, 0))
				must(t, w.Put(ctx, data[1:], right, 1))
				must(t, w.Put(ctx, data, left, size))
				must(t, w.Complete())
				must(t, w.Wait(ctx))
				if buf[0] != round {
					t.Errorf("read %d in round %d", buf[0], round)
				}
				for k := 1; k < size; k++ {
					a, b := round<<32+int64(left)<<16+int64(k), round<<32+int64(right)<<16+int64(k)
					if memory[k] != a || memory[size+k] != b {
						t.Fatalf("round %d, element %d: %x and %x, want %x and %x", round, k, memory[k], memory[size+k], a, b)
					}
				}
			}
			must(t, w.Free(ctx))
		})
	}
}

// Start waits for Post, and Wait for Complete; both end with their context, and go on after that.
func TestWin_PostAndStartWait(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		memory := make([]int64, 1)
		w := newWin(t, c, memory)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		if c.Rank() == 0 {
			if err := w.Start(short, 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			must(t, w.Start(ctx, 1))
			if waited := time.Since(start); waited < 2*time.Second {
				t.Errorf("the epoch begins after %v", waited)
			}
			if err := w.Put(ctx, []int64{1}, 0, 0); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("a put elsewhere: %v", err)
			}
			if err := w.Lock(ctx, 1, mpi.Shared); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("a lock: %v", err)
			}
			must(t, w.Put(ctx, []int64{7}, 1, 0))
			time.Sleep(3 * time.Second)
			must(t, w.Complete())
		} else {
			time.Sleep(2 * time.Second)
			must(t, w.Post(0))
			if err := w.Post(0); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("a second post: %v", err)
			}
			if err := w.Fence(ctx); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("a fence: %v", err)
			}
			if err := w.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			must(t, w.Wait(ctx))
			if waited := time.Since(start); waited < 5*time.Second || memory[0] != 7 {
				t.Errorf("the exposure is over after %v, with %v", waited, memory)
			}
		}
		must(t, w.Free(ctx))
	})
}

// Of two goroutines that wait to begin an epoch one does, and to end one likewise: the other has none.
// What the first has begun is not lost, nor does the second take the end of the next one.
func TestWin_TwoGoroutinesInOneEpoch(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := newWin(t, c, make([]int64, 1))
		other := make(chan error, 1)
		switch c.Rank() {
		case 0:
			go func() { other <- w.Start(ctx, 2) }()
			must(t, w.Start(ctx, 1))
			if err := <-other; !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("a second epoch begins in the first: %v", err)
			}
			must(t, w.Complete())
			must(t, w.Start(ctx, 2))
			must(t, w.Complete())
			must(t, w.Start(ctx, 1))
			must(t, w.Complete())
		case 1:
			time.Sleep(time.Second)
			must(t, w.Post(0))
			go func() { other <- w.Wait(ctx) }()
			errs := []error{w.Wait(ctx), <-other}
			if errs[0] == nil {
				errs[0], errs[1] = errs[1], errs[0]
			}
			if !errors.Is(errs[0], mpi.ErrEpoch) || errs[1] != nil {
				t.Errorf("two that end one epoch: %v", errs)
			}
			must(t, w.Post(0))
			must(t, w.Wait(ctx))
		case 2:
			time.Sleep(2 * time.Second)
			must(t, w.Post(0))
			must(t, w.Wait(ctx))
		}
		must(t, w.Free(ctx))
	})
}

// Who waits for a process that is down hears of it: in Start, in Wait, in a fence, and for an answer.
func TestWin_Down(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		if c.Rank() == 2 {
			must(t, w.Start(ctx, 0))
			time.Sleep(time.Second)
			must(t, c.World().Close())
			return
		}
		var down *mpi.ProcessError
		check := func(what string, err error) {
			t.Helper()
			if !errors.As(err, &down) || down.Rank != 2 || !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if c.Rank() == 0 {
			must(t, w.Post(2, 1))
			check("wait", w.Wait(ctx))
			if err := w.Wait(ctx); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("the exposure goes on: %v", err)
			}
		} else {
			must(t, w.Start(ctx, 0))
			must(t, w.Complete())
			check("start", w.Start(ctx, 2))
		}
		check("fence", w.Fence(ctx))
		check("post", w.Post(2))
		check("lock", w.Lock(ctx, 2, mpi.Exclusive))
		check("flush", w.Flush(ctx, 2))
		check("free", w.Free(ctx))
	})
}

// A process that frees a window alone, as another one is down, leaves nobody waiting for it.
func TestWin_FreedAlone(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		if c.Rank() == 0 {
			must(t, w.Lock(ctx, 1, mpi.Exclusive))
		}
		must(t, c.Barrier(ctx))
		switch c.Rank() {
		case 0:
			time.Sleep(time.Minute)
			if err := w.Unlock(ctx, 1); !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("%v", err)
			}
		case 1:
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := w.Free(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if err := w.Free(ctx); !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("%v", err)
			}
			time.Sleep(2 * time.Minute)
		case 2:
			start := time.Now()
			if err := w.Lock(ctx, 1, mpi.Exclusive); !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("%v", err)
			}
			if waited := time.Since(start); waited > 3*time.Second {
				t.Errorf("after %v", waited)
			}
			if err := w.Lock(ctx, 1, mpi.Exclusive); !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("%v", err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}
