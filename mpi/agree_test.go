package mpi_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

var (
	agreeRuns = flag.Int("agree.runs", 30, "random programs of agreements and deaths that are run")
	agreeSeed = flag.Uint64("agree.seed", 0, "of the first, the others count on from it; 0 is a random one")
)

// mortals is a cluster whose processes can die: nothing of them arrives any more, and nothing at
// them.
type mortals struct {
	links []*fault.Link
	died  sync.Map // ranks
}

func (m *mortals) die(rank int) {
	m.died.Store(rank, true)
	m.links[rank].Cut(true)
}

// mortal is bubble for programs whose processes die.
func mortal(
	t *testing.T, n int, faults fault.Config, program func(t *testing.T, c *mpi.Comm, all *mortals),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := &mortals{}
		eps := mcdtest.Open(t, n, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				f, err := fault.New(l, rand.New(rand.NewPCG(7, uint64(node))), faults)
				must(t, err)
				all.links = append(all.links, f)
				return f
			},
		})
		var worlds []*mpi.World
		for _, ep := range eps {
			w, err := mpi.Open(ep, mpi.Config{PeerTimeout: time.Second})
			must(t, err)
			worlds = append(worlds, w)
		}
		var ranks sync.WaitGroup
		for _, w := range worlds {
			ranks.Go(func() { program(t, w.Comm(), all) })
		}
		ranks.Wait()
		for rank, w := range worlds {
			ranks.Go(func() {
				err := w.Close()
				if _, died := all.died.Load(rank); err == nil || died {
					return
				}
				down, ok := errors.AsType[*memfifo.PeerDownError](err) // something was under way to it
				if ok {
					_, ok = all.died.Load(int(down.Node))
				}
				if !ok {
					t.Errorf("rank %d: %v", rank, err)
				}
			})
		}
		ranks.Wait()
	})
}

// named returns the ranks in the world that an error names.
func named(err error) (ranks []int) {
	if p, ok := err.(*mpi.ProcessError); ok { //nolint:errorlint // the error itself, not what it wraps
		return []int{p.Rank}
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			ranks = append(ranks, named(e)...)
		}
	case interface{ Unwrap() error }:
		ranks = named(e.Unwrap())
	}
	return ranks
}

// Flags are combined on all, however often.
func TestAgree(t *testing.T) {
	for _, faults := range []fault.Config{{}, {Loss: .1, Duplicate: .1}} {
		for n := 1; n <= 5; n++ {
			bubble(t, n, faults, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				for k := range 20 {
					lacks := (k + 1) % c.Size()
					flags := ^uint64(0)
					if c.Rank() == lacks {
						flags = ^(uint64(1) << k)
					}
					if got, err := c.Agree(t.Context(), flags); err != nil || got != ^(uint64(1)<<k) {
						t.Errorf("rank %d of %d: %#x, %v", c.Rank(), n, got, err)
					}
				}
				must(t, c.Barrier(t.Context()))
			})
		}
	}
}

// A process that is down is named on all, until all have acknowledged that.
func TestAgree_NamesWhoIsDown(t *testing.T) {
	for dies := range 3 {
		mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
			if c.Rank() == dies {
				all.die(dies)
				return
			}
			ctx := t.Context()
			if failed := c.Failed(); failed != nil {
				t.Errorf("%v are down", failed)
			}
			for k := range 3 {
				flags, err := c.Agree(ctx, 4+uint64(c.Rank()))
				var want []int // all have acknowledged it
				if k < 2 {
					want = []int{dies}
				}
				if !slices.Equal(named(err), want) || errors.Is(err, mpi.ErrProcessFailed) != (k < 2) || flags&4 == 0 {
					t.Errorf("rank %d, agreement %d: %#x, %v, want %v", c.Rank(), k, flags, err, want)
				}
				if k == 0 && c.Rank() == (dies+1)%3 || k == 1 {
					if acknowledged := c.AckFailed(); !slices.Equal(acknowledged, []int{dies}) {
						t.Errorf("rank %d acknowledges %v", c.Rank(), acknowledged)
					}
				}
			}
		})
	}
}

// A process that two others hear, of which one has given it up, is out on all, and hears so.
func TestAgree_Excludes(t *testing.T) {
	mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		if c.Rank() != 1 { // 0 and 2 do not hear each other
			other := all.links[2-c.Rank()].MAC()
			must(t, all.links[c.Rank()].SetConfig(fault.Config{
				Loss: 1, Match: func(f *transport.Frame) bool { return f.Src == other },
			}))
		}
		flags, err := c.Agree(t.Context(), 1)
		if !slices.Equal(named(err), []int{2}) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
		if c.Rank() < 2 && flags != 1 || c.Rank() == 2 && flags != 0 {
			t.Errorf("rank %d: %#x", c.Rank(), flags)
		}
		n, err := c.Shrink(t.Context())
		if c.Rank() == 2 {
			if !slices.Equal(named(err), []int{2}) {
				t.Errorf("rank 2: %v", err)
			}
			return
		}
		must(t, err)
		if n.Rank() != c.Rank() || n.Size() != 2 {
			t.Errorf("rank %d of %d", n.Rank(), n.Size())
		}
		must(t, n.Barrier(t.Context()))
	})
}

// A wait that ends by its context leaves the agreement as it is: the next one is the next one of all.
func TestAgree_Context(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c.Rank() == 1 {
			time.Sleep(2 * time.Second)
		}
		flags, err := c.Agree(ctx, 1)
		atOnce := c.Rank() == 1 && err == nil && flags == 1 // the others were there before
		if !errors.Is(err, context.DeadlineExceeded) && !atOnce {
			t.Errorf("rank %d: %#x, %v", c.Rank(), flags, err)
		}
		for k := uint64(2); k < 5; k++ {
			if flags, err := c.Agree(t.Context(), k); err != nil || flags != k {
				t.Errorf("rank %d: %#x, %v, want %d", c.Rank(), flags, err, k)
			}
		}
		must(t, c.Barrier(t.Context()))
	})
}

// The end of the world ends a wait, and there is none later.
func TestAgree_Close(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 1 {
			time.Sleep(5 * time.Second)
			return
		}
		done := make(chan error)
		go func() { _, err := c.Agree(t.Context(), 1); done <- err }()
		time.Sleep(time.Second)
		must(t, c.World().Close())
		if err := <-done; !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, err := c.Shrink(t.Context()); !errors.Is(err, mpi.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// Processes go on after each death: Revoke, Shrink, and all that live are in the new communicator.
func TestShrink(t *testing.T) {
	const n = 5
	mortal(t, n, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		ctx, me, first := t.Context(), c.Rank(), c
		for step, dies := range []int{4, 0, 2} {
			if me == dies {
				all.die(me)
				return
			}
			sum := make([]int, 1)
			if err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum); err == nil && step == 0 {
				t.Errorf("rank %d: it is complete without rank %d", me, dies)
			}
			c.Revoke()
			next, err := c.Shrink(ctx)
			must(t, err)
			if next.Size() != n-1-step || next.Revoked() || !c.Revoked() {
				t.Errorf("rank %d: %d processes, revoked: %v", me, next.Size(), next.Revoked())
			}
			c = next
			ranks := make([]int, c.Size())
			must(t, mpi.Allgather(ctx, c, []int{me}, ranks))
			if !slices.IsSorted(ranks) || slices.Contains(ranks, dies) || ranks[c.Rank()] != me {
				t.Errorf("rank %d: %v", me, ranks)
			}
			must(t, c.Barrier(ctx))
		}
		if again, err := first.Shrink(ctx); err != nil || again.Size() != 2 {
			t.Errorf("rank %d: %v", me, err)
		}
	})
}

// Random programs of agreements, in which processes die at any time: all that live return, and the
// same, whatever the network does.
func TestAgree_Model(t *testing.T) {
	eachSeed(t, "agree", *agreeSeed, *agreeRuns, runAgreements)
}

func runAgreements(t *testing.T, seed uint64) {
	program := rand.New(rand.NewPCG(seed, 0))
	n, calls := 2+program.IntN(5), 1+program.IntN(5)
	faults := fault.Config{}
	if program.IntN(2) == 0 {
		faults = fault.Config{Loss: .05, Duplicate: .05, Reorder: .1, Delay: .1, DelayMax: time.Millisecond}
	}
	deaths := make([]time.Duration, n) // 0: it lives
	for range program.IntN(n) {
		deaths[program.IntN(n)] = time.Duration(1+program.IntN(3000*calls)) * time.Microsecond
	}
	var mu sync.Mutex
	results := map[int]string{} // of the k-th agreement
	mortal(t, n, faults, func(t *testing.T, c *mpi.Comm, all *mortals) {
		random := rand.New(rand.NewPCG(seed, uint64(c.Rank())+1))
		ctx, died := context.WithCancel(t.Context())
		defer died()
		if after := deaths[c.Rank()]; after > 0 {
			time.AfterFunc(after, func() { all.die(c.Rank()); died() })
		}
		for k := range calls {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
			var result string
			var err error
			if k%3 == 2 {
				var s *mpi.Comm
				if s, err = c.Shrink(ctx); err == nil {
					result = fmt.Sprint(s.Size())
					s.Revoke()
				}
			} else {
				flags := random.Uint64()
				flags, err = c.Agree(ctx, flags|random.Uint64())
				result = fmt.Sprint(flags, named(err))
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil && !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
			mu.Lock()
			if other, ok := results[k]; ok && other != result {
				t.Errorf("agreement %d: rank %d has %q, another one %q", k, c.Rank(), result, other)
			}
			results[k] = result
			mu.Unlock()
		}
		time.Sleep(2 * time.Second) // a Revoke may be the first that one sends to another: it finds it there
	})
}

// from matches the frames of a station.
func from(mac transport.MAC) func(*transport.Frame) bool {
	return func(f *transport.Frame) bool { return f.Src == mac }
}
