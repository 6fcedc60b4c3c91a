package mpi_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// lossy is links that lose, repeat, delay and disorder frames.
var lossy = fault.Config{Loss: .05, Duplicate: .05, Reorder: .1, Delay: .1, DelayMax: time.Millisecond}

// newWin makes a window of some elements.
func newWin[T mpi.Element](t *testing.T, c *mpi.Comm, memory []T) *mpi.Win[T] {
	t.Helper()
	w, err := mpi.NewWin(t.Context(), c, memory)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// What was put before a fence is in place after it, of all sizes, and what a Get reads is what the
// owner had at the fence.
func TestWin_Fence(t *testing.T) {
	for _, faults := range []fault.Config{{}, lossy} {
		for n := 1; n <= 4; n++ {
			bubble(t, n, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				ctx, right := t.Context(), (c.Rank()+1)%n
				for _, size := range []int{1, 7, 1000, 100_000} {
					memory := make([]int32, 2*size+c.Rank()) // of its own length
					w := newWin(t, c, memory)
					for round := range int32(3) {
						data, buf := make([]int32, size), make([]int32, size)
						for k := range data {
							data[k] = int32(c.Rank())<<20 + round<<24 + int32(k)
						}
						must(t, w.Fence(ctx))
						must(t, w.Put(ctx, data, right, size))
						must(t, w.Fence(ctx))
						must(t, w.Get(ctx, buf, right, size))
						must(t, w.Fence(ctx))
						left := (c.Rank() + n - 1) % n
						for k := range data {
							want := int32(left)<<20 + round<<24 + int32(k)
							if memory[size+k] != want || buf[k] != data[k] {
								t.Fatalf("%d of %d elements: %x, want %x; read %x, want %x", k, size, memory[size+k], want, buf[k], data[k])
							}
						}
					}
					must(t, w.Free(ctx))
				}
			})
		}
	}
}

// A Put is in place when Flush or Unlock has returned: a third process that is told then reads it.
func TestWin_FlushAndUnlock(t *testing.T) {
	for _, unlock := range []bool{false, true} {
		bubble(t, 3, lossy, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx := t.Context()
			w := newWin(t, c, make([]float64, 10_000))
			for round := range 5 {
				data, buf := slices.Repeat([]float64{float64(round)}, 10_000), make([]float64, 10_000)
				switch c.Rank() {
				case 0:
					must(t, w.Lock(ctx, 1, mpi.Shared))
					must(t, w.Put(ctx, data, 1, 0))
					if unlock {
						must(t, w.Unlock(ctx, 1))
					} else {
						must(t, w.Flush(ctx, 1))
					}
					must(t, mpi.Send(ctx, c, []byte{1}, 2, 0))
					must(t, second(mpi.Recv(ctx, c, make([]byte, 1), 2, 0)))
					if !unlock {
						must(t, w.Unlock(ctx, 1))
					}
				case 2:
					must(t, second(mpi.Recv(ctx, c, make([]byte, 1), 0, 0)))
					must(t, w.LockAll(ctx))
					must(t, w.Get(ctx, buf, 1, 0))
					must(t, w.UnlockAll(ctx))
					if !slices.Equal(buf, data) {
						t.Errorf("round %d: %v to %v", round, buf[0], buf[len(buf)-1])
					}
					must(t, mpi.Send(ctx, c, []byte{1}, 0, 0))
				}
			}
			must(t, w.Free(ctx))
		})
	}
}

// Who holds an exclusive lock is alone: no read and write of two processes overlap, and everybody
// gets the lock in the end. A shared lock is held by several at once.
func TestWin_Lock(t *testing.T) {
	for _, faults := range []fault.Config{{}, lossy} {
		const n, each, size = 4, 20, 300
		bubble(t, n, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx := t.Context()
			memory := make([]uint64, size)
			w := newWin(t, c, memory)
			for range each {
				for rank := range 2 { // one of them itself
					buf := make([]uint64, size)
					must(t, w.Lock(ctx, rank, mpi.Exclusive))
					must(t, w.Get(ctx, buf, rank, 0))
					if slices.Min(buf) != slices.Max(buf) {
						t.Errorf("rank %d: %v is torn", rank, buf)
					}
					for k := range buf {
						buf[k]++
					}
					time.Sleep(time.Millisecond)
					must(t, w.Put(ctx, buf, rank, 0))
					must(t, w.Unlock(ctx, rank))
				}
			}
			must(t, c.Barrier(ctx))
			if c.Rank() < 2 {
				must(t, w.Lock(ctx, c.Rank(), mpi.Shared))
				if memory[0] != n*each || memory[size-1] != n*each {
					t.Errorf("rank %d: %d and %d, want %d", c.Rank(), memory[0], memory[size-1], n*each)
				}
				must(t, w.Unlock(ctx, c.Rank()))
			}
			must(t, w.LockAll(ctx)) // each waits for all others in it
			must(t, c.Barrier(ctx))
			must(t, w.UnlockAll(ctx))
			must(t, w.Free(ctx))
		})
	}
}

// A lock whose wait ends with its context is not held, and is in nobody's way; nor is one of a
// process that is gone.
func TestWin_LockGivenUp(t *testing.T) {
	bubble(t, 4, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		var down *mpi.ProcessError
		switch c.Rank() {
		case 0:
			time.Sleep(time.Minute)
		case 1: // holds the lock, and dies with it
			must(t, w.Lock(ctx, 0, mpi.Exclusive))
			time.Sleep(10 * time.Second)
			must(t, w.Put(ctx, []int64{7}, 0, 0))
			must(t, c.World().Close())
			return
		case 2: // gives up before, and comes again after the next one
			time.Sleep(time.Second)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := w.Lock(short, 0, mpi.Exclusive); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			if err := w.Get(ctx, make([]int64, 1), 0, 0); !errors.Is(err, mpi.ErrEpoch) {
				t.Errorf("%v", err)
			}
			time.Sleep(2 * time.Second)
			must(t, w.Lock(ctx, 0, mpi.Shared))
			must(t, w.Unlock(ctx, 0))
		case 3:
			time.Sleep(3 * time.Second)
			start, buf := time.Now(), make([]int64, 1)
			must(t, w.Lock(ctx, 0, mpi.Exclusive))
			if waited := time.Since(start); waited < 6*time.Second || waited > 8*time.Second {
				t.Errorf("has waited %v", waited)
			}
			must(t, w.Get(ctx, buf, 0, 0))
			if buf[0] != 7 {
				t.Errorf("%d, want what the dead process has left", buf[0])
			}
			must(t, w.Unlock(ctx, 0))
			time.Sleep(time.Second)
			if err := w.Lock(ctx, 1, mpi.Shared); !errors.As(err, &down) || down.Rank != 1 {
				t.Errorf("%v", err)
			}
			if err := w.LockAll(ctx); !errors.As(err, &down) || down.Rank != 1 {
				t.Errorf("%v", err)
			}
			must(t, w.Lock(ctx, 0, mpi.Exclusive)) // LockAll holds none
			must(t, w.Unlock(ctx, 0))
		}
		if err := w.Free(ctx); !errors.As(err, &down) || down.Rank != 1 {
			t.Errorf("%v", err)
		}
	})
}

// A process that falls silent with a lock, as its cable is cut, is down, and the lock the next
// one's. Nothing was under way, and neither had waited for the other: they are no neighbours.
func TestWin_LockOfASilentProcess(t *testing.T) {
	bubbleOfLinks(t, 4, func(t *testing.T, c *mpi.Comm, cut func()) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		switch c.Rank() {
		case 2:
			must(t, w.Lock(ctx, 0, mpi.Exclusive))
			time.Sleep(900 * time.Millisecond) // all is acknowledged
			cut()
			time.Sleep(time.Minute)
		case 1:
			time.Sleep(time.Second)
			must(t, w.Lock(ctx, 0, mpi.Exclusive))
			must(t, w.Unlock(ctx, 0))
		}
	})
}

// A process that falls silent while another one waits for it in a window is missed.
func TestWin_SilentTarget(t *testing.T) {
	for what, wait := range map[string]func(ctx context.Context, w *mpi.Win[int64]) error{
		"lock":  func(ctx context.Context, w *mpi.Win[int64]) error { return w.Lock(ctx, 2, mpi.Exclusive) },
		"start": func(ctx context.Context, w *mpi.Win[int64]) error { return w.Start(ctx, 2) },
		"wait":  func(ctx context.Context, w *mpi.Win[int64]) error { return errors.Join(w.Post(2), w.Wait(ctx)) },
	} {
		bubbleOfLinks(t, 4, func(t *testing.T, c *mpi.Comm, cut func()) {
			ctx := t.Context()
			w := newWin(t, c, make([]int64, 1))
			switch c.Rank() {
			case 0:
				time.Sleep(100 * time.Millisecond)
				start := time.Now()
				var down *mpi.ProcessError
				if err := wait(ctx, w); !errors.As(err, &down) || down.Rank != 2 || time.Since(start) > 10*time.Second {
					t.Errorf("%s: %v after %v", what, err, time.Since(start))
				}
			case 2:
				must(t, w.Lock(ctx, 2, mpi.Exclusive))
				time.Sleep(200 * time.Millisecond)
				cut()
				time.Sleep(time.Minute)
			}
		})
	}
}

// What is wrong is told before anything is sent.
func TestWin_Errors(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, one := t.Context(), []float32{1}
		memory := make([]float32, 3-c.Rank()) // rank 1 has two
		w := newWin(t, c, memory)
		check := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		check("a put outside of an epoch", w.Put(ctx, one, 1, 0), mpi.ErrEpoch)
		check("an unlock without a lock", w.Unlock(ctx, 1), mpi.ErrEpoch)
		check("an unlock of all without", w.UnlockAll(ctx), mpi.ErrEpoch)
		check("a complete without a start", w.Complete(), mpi.ErrEpoch)
		check("a wait without a post", w.Wait(ctx), mpi.ErrEpoch)
		must(t, w.Lock(ctx, 1, mpi.Shared))
		check("a put at another rank", w.Put(ctx, one, 0, 0), mpi.ErrEpoch)
		check("a fence with a lock", w.Fence(ctx), mpi.ErrEpoch)
		check("a free with a lock", w.Free(ctx), mpi.ErrEpoch)
		check("a start with a lock", w.Start(ctx, 1), mpi.ErrEpoch)
		check("a second lock", w.Lock(ctx, 1, mpi.Shared), mpi.ErrEpoch)
		check("a lock of all", w.LockAll(ctx), mpi.ErrEpoch)
		must(t, w.Unlock(ctx, 1))
		must(t, w.Fence(ctx))
		check("a put of three at two", w.Put(ctx, make([]float32, 3), 1, 0), mpi.ErrRange)
		check("a put behind the end", w.Put(ctx, one, 1, 2), mpi.ErrRange)
		check("a get far behind the end", w.Get(ctx, one, 1, math.MaxInt), mpi.ErrRange)
		check("a get before the beginning", w.Get(ctx, one, 1, -1), mpi.ErrRange)
		check("an accumulate behind the end", w.Accumulate(ctx, one, 1, 2, mpi.Add), mpi.ErrRange)
		check("a put to no rank", w.Put(ctx, one, 2, 0), mpi.ErrRank)
		check("a put to nobody", w.Put(ctx, one, mpi.ProcNull, 9), nil)
		check("a flush of no rank", w.Flush(ctx, -1), mpi.ErrRank)
		check("a lock of no rank", w.Lock(ctx, 2, mpi.Shared), mpi.ErrRank)
		check("a post to no rank", w.Post(7), mpi.ErrRank)
		check("and of floats", w.Accumulate(ctx, one, 1, 0, mpi.And), mpi.ErrOp)
		check("no update", w.Accumulate(ctx, one, 1, 0, 0), mpi.ErrOp)
		check("a put with a context that is over", w.Put(ended(t), one, 1, 0), context.Canceled)
		must(t, w.Put(ctx, one, 1, 1))
		must(t, w.Lock(ctx, 0, mpi.Shared))
		must(t, w.Unlock(ctx, 0))
		check("a put after another epoch than a fence's", w.Put(ctx, one, 1, 0), mpi.ErrEpoch)
		must(t, w.Free(ctx))
		check("a put after free", w.Put(ctx, one, 1, 0), mpi.ErrFreed)
		check("a fence after free", w.Fence(ctx), mpi.ErrFreed)
		check("a flush after free", w.FlushAll(ctx), mpi.ErrFreed)
		check("a lock after free", w.Lock(ctx, 0, mpi.Shared), mpi.ErrFreed)
		check("a second free", w.Free(ctx), mpi.ErrFreed)
		if c.Rank() == 1 && memory[1] != 1 || c.Rank() == 0 && !slices.Equal(memory, make([]float32, 3)) {
			t.Errorf("%v", memory)
		}
	})
}

// Elements of two kinds are no window, and all processes hear that.
func TestNewWin_OfTwoKinds(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		var err error
		if c.Rank() == 0 {
			_, err = mpi.NewWin(t.Context(), c, make([]int64, 1))
		} else {
			_, err = mpi.NewWin(t.Context(), c, make([]float64, 1))
		}
		if err == nil {
			t.Error("no error")
		}
	})
}

// Close ends all waits in a window.
func TestWin_Close(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		w := newWin(t, c, make([]int64, 1))
		if c.Rank() == 1 {
			must(t, w.Lock(ctx, 0, mpi.Exclusive))
			must(t, w.Lock(ctx, 1, mpi.Exclusive))
			must(t, c.Barrier(ctx))
			time.Sleep(time.Minute)
			return
		}
		must(t, c.Barrier(ctx))
		must(t, w.Post(1))
		var waits sync.WaitGroup
		for what, wait := range map[string]func() error{
			"lock of another": func() error { return w.Lock(ctx, 1, mpi.Exclusive) },
			"lock of itself":  func() error { return w.Lock(ctx, 0, mpi.Exclusive) },
			"wait":            func() error { return w.Wait(ctx) },
		} {
			waits.Go(func() {
				if err := wait(); !errors.Is(err, mpi.ErrClosed) {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		time.Sleep(time.Second)
		must(t, c.World().Close())
		waits.Wait()
		if err := w.Put(ctx, []int64{1}, 1, 0); !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// Windows are made and freed any number of times: what they use is used again.
func TestWin_Many(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, other := t.Context(), 1-c.Rank()
		for round := range int16(100) {
			memory := make([]int16, 2)
			v, w := newWin(t, c, memory[:1]), newWin(t, c, memory[1:])
			must(t, v.Fence(ctx))
			must(t, w.Fence(ctx))
			must(t, v.Put(ctx, []int16{round}, other, 0))
			must(t, w.Put(ctx, []int16{-round}, other, 0))
			must(t, w.Free(ctx))
			must(t, v.Free(ctx))
			if memory[0] != round || memory[1] != -round {
				t.Fatalf("round %d: %v", round, memory)
			}
		}
	})
}

// bubbleOfLinks is bubble where each process may cut its link; then Close has errors.
func bubbleOfLinks(t *testing.T, n int, program func(t *testing.T, c *mpi.Comm, cut func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		links := make([]*fault.Link, n)
		eps := mcdtest.Open(t, n, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				f, err := fault.New(l, rand.New(rand.NewPCG(7, uint64(node))), fault.Config{})
				must(t, err)
				links[node] = f
				return f
			},
		})
		var worlds []*mpi.World
		for _, ep := range eps {
			w, err := mpi.Open(ep, mpi.Config{})
			must(t, err)
			worlds = append(worlds, w)
		}
		var ranks sync.WaitGroup
		for k, w := range worlds {
			ranks.Go(func() {
				program(t, w.Comm(), func() { links[k].Cut(true) })
			})
		}
		ranks.Wait()
		for _, w := range worlds {
			ranks.Go(func() { _ = w.Close() })
		}
		ranks.Wait()
	})
}
