package mpi_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// Random programs of multicasts by all, in a communicator and in its parts, of which some processes
// or all give up many, while the multicasts of some do not come to others. No other call waits
// without an end, and what succeeds has the right values.
func TestMulticast_GivesUpModel(t *testing.T) {
	eachSeed(t, "model", *modelSeed, modelPrograms(), func(t *testing.T, seed uint64) {
		program := rand.New(rand.NewPCG(seed, 0))
		n := 2 + program.IntN(3)
		if program.IntN(4) == 0 {
			n = 5 + program.IntN(5) // 9 tell nothing by multicasts
		}
		faults := randomFaults(program)
		deaf, most := make([][]bool, n), 1+program.IntN(4)
		for k := range deaf {
			for range n {
				deaf[k] = append(deaf[k], program.IntN(4) < most)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			var filters atomic.Bool
			var links []*fault.Link
			nodes := make(map[transport.MAC]int)
			eps := mcdtest.Open(t, n, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
					nodes[l.MAC()] = int(node)
					f, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(node))), faults)
					must(t, err)
					links = append(links, f)
					filtered, err := fault.New(f, rand.New(rand.NewPCG(seed, 0)), fault.Config{
						Loss: 1, Match: func(f *transport.Frame) bool {
							return filters.Load() && f.Dst.IsMulticast() && deaf[node][nodes[f.Src]]
						},
					})
					must(t, err)
					return filtered
				},
			})
			cfg := byEach
			cfg.PeerTimeout = time.Minute
			worlds := openAll(t, eps, cfg)
			inAll(worlds, func(c *mpi.Comm) { giveUpAtRandom(t, c, seed, &filters) })
			filters.Store(false)
			for _, l := range links {
				must(t, l.SetConfig(fault.Config{}))
			}
			closeAll(worlds)
		})
	})
}

// giveUpAtRandom is a process' part in a program, in phases of which each begins with a barrier: in
// some multicasts are filtered, and in some a process, or all, give up what they have begun.
func giveUpAtRandom(t *testing.T, c *mpi.Comm, seed uint64, filters *atomic.Bool) {
	program := rand.New(rand.NewPCG(seed, 1)) // the same at all ranks
	random := rand.New(rand.NewPCG(seed, 100+uint64(c.Rank())))
	part, err := c.Split(t.Context(), c.Rank()%2, -c.Rank())
	must(t, err)
	const patient = 10 * time.Minute
	hasty, bcasts, parts := 1+program.IntN(8), program.IntN(4), 4*(1+program.IntN(4))
	allHasty, isHasty := false, false
	phase := 1
	for k := range 1 + program.IntN(300) {
		if phase--; phase == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			err := c.Barrier(ctx)
			cancel()
			if err != nil {
				t.Errorf("seed %d, rank %d, before %d: %v", seed, c.Rank(), k, err)
				return
			}
			phase, allHasty, isHasty = 1+program.IntN(80), program.IntN(3) == 0, random.IntN(hasty) == 0
			filters.Store(program.IntN(2) == 0)
		}
		if !allHasty && random.IntN(10) == 0 {
			time.Sleep(time.Duration(random.IntN(5000)) * time.Microsecond)
		}
		patience := patient
		if allHasty {
			patience = time.Millisecond // less than who asks has
		} else if isHasty && random.IntN(8) > 0 {
			patience = time.Duration(random.IntN(2)*random.IntN(6)) * time.Millisecond
		}
		d := c
		if program.IntN(parts) == 0 {
			d = part
		}
		err := multicastAtRandom(t, d, k, bcasts, program, patience)
		if err != nil && patience == patient && (!errors.Is(err, mpi.ErrWithdrawn) || errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("seed %d, rank %d of %d, %d among %d: %v", seed, c.Rank(), c.Size(), k, d.Size(), err)
			return
		}
	}
	if got := c.World().Counters().Malformed; got > 0 {
		t.Errorf("seed %d, rank %d: %d malformed", seed, c.Rank(), got)
	}
	must(t, c.Barrier(t.Context()))
}

// multicastAtRandom is one operation, with some patience: a Bcast as often as bcasts says. It checks
// what comes.
func multicastAtRandom(
	t *testing.T, c *mpi.Comm, k, bcasts int, program *rand.Rand, patience time.Duration,
) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	n := c.Size()
	root, kind := program.IntN(1+program.IntN(9))%n, program.IntN(3+bcasts)
	var got, want []int
	switch {
	case kind >= 3:
		got, want = []int{-1}, []int{k}
		if c.Rank() == root {
			got[0] = k
		}
		err = mpi.Bcast(ctx, c, got, root)
	case kind > 0:
		got, want = []int{0}, []int{n*k + n*(n-1)/2}
		err = mpi.Allreduce(ctx, c, []int{k + c.Rank()}, got, mpi.Sum)
	default:
		got, want = make([]int, n), sequence(k, n)
		err = mpi.Allgather(ctx, c, []int{k + c.Rank()}, got)
	}
	if err == nil && !slices.Equal(got, want) {
		t.Errorf("rank %d, %d: %v, want %v", c.Rank(), k, got, want)
	}
	return err
}
