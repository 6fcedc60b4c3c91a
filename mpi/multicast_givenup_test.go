package mpi_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mpi"
)

// Random programs in which each process may give up each Bcast at any time, its root, too: whoever
// succeeds has the right value; who waits without an end gets it, or hears that it was withdrawn.
func TestMulticast_GivenUpModel(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), func(t *testing.T, seed uint64) {
		program := rand.New(rand.NewPCG(seed, 0))
		n := 2 + program.IntN(3)
		faults := randomFaults(program)
		cfg := byMulticast
		cfg.PeerTimeout = time.Minute
		giveUp := 1 + program.IntN(10)
		var mu sync.Mutex        // guards these two
		roots := map[int]error{} // what its root says of each Bcast
		others := map[int][]error{}
		bubble(t, n, faults, cfg, func(t *testing.T, c *mpi.Comm) {
			program := rand.New(rand.NewPCG(seed, 1))
			random := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))
			for k := range 50 + program.IntN(200) {
				if random.IntN(10) == 0 {
					time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
				}
				if random.IntN(100) == 0 {
					time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				}
				r := program.IntN(1 + program.IntN(n))
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				mine := random.IntN(giveUp) == 0
				if mine {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(4000))*time.Microsecond)
				}
				b := []int{-1}
				if c.Rank() == r {
					b[0] = k
				}
				err := mpi.Bcast(ctx, c, b, r)
				cancel()
				mu.Lock()
				if c.Rank() == r {
					roots[k] = err
					if err != nil && !mine {
						t.Errorf("root %d of %d: %v", r, k, err)
					}
				} else {
					if err == nil && b[0] != k {
						t.Errorf("rank %d has %d, want %d", c.Rank(), b[0], k)
					}
					if err != nil && !mine && !errors.Is(err, mpi.ErrWithdrawn) {
						t.Errorf("rank %d of %d: %v", c.Rank(), k, err)
					}
					others[k] = append(others[k], err)
				}
				mu.Unlock()
			}
			must(t, c.Barrier(t.Context()))
			if got := c.World().Counters(); got.Malformed > 0 {
				t.Errorf("%d malformed", got.Malformed)
			}
		})
		for k, errs := range others {
			for _, err := range errs {
				if roots[k] == nil && errors.Is(err, mpi.ErrWithdrawn) {
					t.Errorf("Bcast %d: its root has sent it, and a process: %v", k, err)
				}
			}
		}
	})
}

// An Op that panics, in a program that goes on: the others do not wait for the root, and the next
// Allreduce is of all.
func TestMulticast_OpPanicsAtTheRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := mpi.Config{Algorithms: []mpi.Algorithm{{Operation: "allreduce", Name: "multicast"}}}
		worlds, _ := openLossy(t, 3, cfg, func() bool { return false })
		inAll(worlds, func(c *mpi.Comm) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			sum := make([]int, 1)
			for range 40 {
				func() {
					defer func() { _ = recover() }()
					err := mpi.Allreduce(ctx, c, []int{1}, sum, func(_, _ []int) { panic("no sum") })
					if !errors.Is(err, mpi.ErrWithdrawn) {
						t.Errorf("rank %d: %v", c.Rank(), err)
					}
				}()
			}
			must(t, mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum))
			if sum[0] != 3 {
				t.Errorf("rank %d has %d, want 3", c.Rank(), sum[0])
			}
		})
		closeAll(worlds)
	})
}
