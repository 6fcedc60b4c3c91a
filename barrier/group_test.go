package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fault"
)

// stages runs all groups through barriers, and checks at each exit that all have entered.
func stages(t *testing.T, all []*barrier.Group, rounds int, pause func(k, round int)) {
	t.Helper()
	entered := make([]atomic.Int64, len(all))
	expectNone(t, each(all, func(k int, g *barrier.Group) error {
		for round := 1; round <= rounds; round++ {
			pause(k, round)
			entered[k].Store(int64(round))
			if err := g.Barrier(limit(t)); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			for other := range entered {
				if entered[other].Load() < int64(round) {
					return fmt.Errorf("round %d was left before node %d had entered", round, other)
				}
			}
		}
		return nil
	}))
}

func TestEveryAlgorithm(t *testing.T) {
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, size := range []int{1, 2, 3, 7} {
					all := open(t, size, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: parse(t, name)})
					stages(t, all, 100, func(int, int) {})
					for _, g := range all {
						if s := g.Stats(); s.Barriers != 100 || s.Nacks != 0 || s.Resent != 0 {
							t.Errorf("size %d: %+v: want 100 barriers, and nothing asked for", size, s)
						}
					}
				}
			})
		})
	}
}

// In spite of loss, duplicates, reordering, delay and corruption no node leaves early, and none
// hangs.
func TestFaults(t *testing.T) {
	seed := rand.Uint64()
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := fault.Config{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Delay: 0.1, Corrupt: 0.05, DelayMax: 20 * time.Millisecond}
				all := open(t, 7, 1, cfg, seed).groups(t, barrier.GroupConfig{Algorithm: parse(t, name)})
				rng := rand.New(rand.NewPCG(seed, 7))
				late := make([]time.Duration, 7*51)
				for i := range late {
					late[i] = time.Duration(rng.ExpFloat64() * float64(time.Millisecond))
				}
				stages(t, all, 50, func(k, round int) { time.Sleep(late[7*round+k]) })
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			})
		})
	}
}

func TestFuzzyBarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 3, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
		first, err := all[0].Arrive()
		if err != nil {
			t.Fatal(err)
		}
		if done, err := first.Done(); done || err != nil {
			t.Errorf("alone in it: %v, %v", done, err)
		}
		if _, err := all[0].Arrive(); !errors.Is(err, barrier.ErrPending) {
			t.Errorf("entered twice: %v", err)
		}
		var others []barrier.Ticket
		for _, g := range all[1:] {
			ticket, err := g.Arrive()
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, ticket)
		}
		synctest.Wait() // the servers do the rest, while the program works
		for _, ticket := range append(others, first) {
			if done, err := ticket.Done(); !done || err != nil {
				t.Errorf("all are in it: %v, %v", done, err)
			}
			if err := ticket.Wait(limit(t)); err != nil {
				t.Error(err)
			}
		}
		second, err := all[0].Arrive()
		if err != nil || second.Generation() != 2 {
			t.Fatalf("generation %d, %v", second.Generation(), err)
		}
		if done, err := first.Done(); !done || err != nil {
			t.Errorf("an old ticket: %v, %v", done, err)
		}
		if err := first.Wait(limit(t)); err != nil {
			t.Errorf("an old ticket: %v", err)
		}
		var none barrier.Ticket // as of an Arrive that failed, and whose error nobody has looked at
		if done, err := none.Done(); !done || err == nil || none.Wait(limit(t)) == nil {
			t.Error("the zero ticket's wait should fail")
		}
	})
}

// Masks that overlap, and a group of the same members, use one number at the same time.
func TestMasksDoNotTakeEachOthersMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{})
		other := c.groups(t, barrier.GroupConfig{ID: 1})
		arrive := func(g *barrier.Group, nodes ...mcd.NodeID) barrier.Ticket {
			return arrive(t, g, barrier.Options{Number: 3, Members: barrier.MaskOf(nodes...)})
		}
		done := func(what string, ticket barrier.Ticket, want bool) {
			t.Helper()
			synctest.Wait()
			if got, err := ticket.Done(); got != want || err != nil {
				t.Errorf("%s: done %v, %v; want %v", what, got, err, want)
			}
		}
		ab, bc := arrive(all[0], 0, 1), arrive(all[2], 1, 2)
		whole, elsewhere := arrive(all[3]), arrive(other[0])
		done("rank 0, with 1", ab, false)
		b := arrive(all[1], 0, 1)
		done("rank 0, with 1, which has entered", ab, true)
		done("rank 1, with 0", b, true)
		done("rank 2, with 1, which is with 0", bc, false)
		arrive(all[1], 1, 2)
		done("rank 2, with 1", bc, true)
		done("all, of whom three are elsewhere", whole, false)
		for k := range 3 {
			arrive(all[k])
		}
		done("all", whole, true)
		done("the other group", elsewhere, false)
	})
}

func TestAllNumbersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 3, 1, fault.Config{Loss: 0.05}, 1).groups(t, barrier.GroupConfig{})
		expectNone(t, each(all, func(k int, g *barrier.Group) error {
			var tickets []barrier.Ticket
			for i := range barrier.Numbers {
				number := uint8(i)
				if k == 1 {
					number = uint8(barrier.Numbers - 1 - i) // in another order
				}
				ticket, err := g.ArriveWith(barrier.Options{Number: number})
				if err != nil {
					return err
				}
				tickets = append(tickets, ticket)
			}
			for _, ticket := range tickets {
				if err := ticket.Wait(limit(t)); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// A node that dies is named to all others, at the same time or nearly so, and they go on without
// it.
func TestADeadNodeIsNamed(t *testing.T) {
	for _, name := range algorithms {
		for _, dead := range []int{0, 3, 6} {
			t.Run(fmt.Sprintf("%s, node %d", name, dead), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := open(t, 7, 1, fault.Config{Loss: 0.1}, 2)
					all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, name), PeerTimeout: time.Second})
					stages(t, all, 3, func(int, int) {})
					_ = c.eps[dead].Close() // without a word
					survivors := slices.Delete(slices.Clone(all), dead, dead+1)
					begun := time.Now()
					for k, err := range each(survivors, func(_ int, g *barrier.Group) error { return g.Barrier(limit(t)) }) {
						var down *barrier.NodeDownError
						if !errors.As(err, &down) || !errors.Is(err, barrier.ErrNodeDown) || !slices.Equal(down.Nodes, []mcd.NodeID{mcd.NodeID(dead)}) {
							t.Fatalf("survivor %d: %v", k, err)
						}
						if want := fmt.Sprintf("barrier 0, generation 4: node %d: silent for more than 1s", dead); err.Error() != want {
							t.Errorf("survivor %d: %q, want %q", k, err, want)
						}
					}
					if took := time.Since(begun); took < time.Second || took > 2*time.Second {
						t.Errorf("it took %v", took)
					}
					var fewer []*barrier.Group
					for _, g := range survivors {
						if err := g.Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
							t.Errorf("the group is broken for good: %v", err)
						}
						rest, err := g.Without(mcd.NodeID(dead))
						if err != nil {
							t.Fatal(err)
						}
						fewer = append(fewer, rest)
					}
					stages(t, fewer, 3, func(int, int) {})
					closeAll(fewer)
				})
			})
		}
	}
}

// Nobody waits for a member that has left. The others complete the barriers that it has
// completed, though some of its messages were lost.
func TestGoodbye(t *testing.T) {
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for seed := range uint64(20) {
					c := open(t, 5, 1, fault.Config{Loss: 0.2}, seed)
					all := c.groups(t, barrier.GroupConfig{Algorithm: parse(t, name)})
					expectNone(t, each(all, func(_ int, g *barrier.Group) error {
						for range 3 {
							if err := g.Barrier(limit(t)); err != nil {
								return fmt.Errorf("seed %d: %w", seed, err)
							}
						}
						return g.Close() // as soon as it has left, whatever the others lack
					}))
				}
			})
			synctest.Test(t, func(t *testing.T) {
				all := open(t, 5, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{Algorithm: parse(t, name)})
				stages(t, all, 2, func(int, int) {})
				begun := time.Now()
				errs := each(all, func(k int, g *barrier.Group) error {
					if k == 2 {
						return g.Close()
					}
					return g.Barrier(limit(t))
				})
				for k, err := range errs {
					if k != 2 && (!errors.Is(err, barrier.ErrNodeDown) || !strings.Contains(err.Error(), "node 2: said goodbye before they had completed it")) {
						t.Errorf("node %d: %v", k, err)
					}
				}
				if took := time.Since(begun); took > time.Second {
					t.Errorf("it took %v to hear a goodbye", took)
				}
			})
		})
	}
}

// A node may go through another barrier between the phases of a fuzzy one, however long that
// takes.
func TestFuzzyBarriersAreNoDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{PeerTimeout: time.Second})
		one, two := barrier.Options{Number: 1}, barrier.Options{Number: 2}
		expectNone(t, each(all, func(k int, g *barrier.Group) error {
			if k == 1 {
				return errors.Join(g.BarrierWith(limit(t), two), g.BarrierWith(limit(t), one))
			}
			ticket, err := g.ArriveWith(one)
			if err != nil {
				return err
			}
			time.Sleep(10 * time.Second) // the other one waits in 2 meanwhile
			return errors.Join(g.BarrierWith(limit(t), two), ticket.Wait(limit(t)))
		}))
	})
}

// The loss of a later step's message is mended in milliseconds, however long the step before
// took.
func TestALossInALaterStepIsMended(t *testing.T) {
	for _, phase := range []time.Duration{1, 20, 50, 80} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 4, 1, fault.Config{}, 0)
			all := c.groups(t, barrier.GroupConfig{Algorithm: schedule.Shuffle()})
			ticket := arrive(t, all[0], barrier.Options{})
			arrive(t, all[2], barrier.Options{})
			time.Sleep(3*time.Second + phase*time.Millisecond)
			arrive(t, all[1], barrier.Options{}) // node 0 is in its second step now, and lacks 2's message
			synctest.Wait()
			c.faults[0][0].Cut(true)
			arrive(t, all[3], barrier.Options{}) // 2 sends it, in vain
			synctest.Wait()
			c.faults[0][0].Cut(false)
			begun := time.Now()
			if err := ticket.Wait(limit(t)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 10*time.Millisecond {
				t.Errorf("phase %d ms: the loss was mended after %v", phase, took)
			}
		})
	}
}

// A deadline before the one that the timer is set for is kept, too.
func TestALossIsMendedWhileAnotherBarrierWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{Algorithm: schedule.Concurrent()})
		long := arrive(t, all[0], barrier.Options{})
		arrive(t, all[1], barrier.Options{})
		time.Sleep(time.Second) // by now they ask node 2 every 100 ms only
		two := barrier.Options{Members: barrier.MaskOf(0, 1)}
		c.faults[1][0].Cut(true)
		ticket := arrive(t, all[0], two)
		arrive(t, all[1], two)
		synctest.Wait()
		c.faults[1][0].Cut(false)
		begun := time.Now()
		if err := ticket.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("the loss was mended after %v", took)
		}
		arrive(t, all[2], barrier.Options{})
		if err := long.Wait(limit(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := open(t, 2, 1, fault.Config{}, 0).groups(t, barrier.GroupConfig{})
		waits := make(chan error)
		go func() { waits <- all[0].Barrier(limit(t)) }()
		synctest.Wait()
		if err := all[0].Close(); err != nil {
			t.Error(err)
		}
		if err := <-waits; !errors.Is(err, barrier.ErrClosed) || !errors.Is(err, mcd.ErrClosed) {
			t.Errorf("a wait ended with %v", err)
		}
		if err := all[0].Close(); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := all[0].Barrier(limit(t)); !errors.Is(err, barrier.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := all[1].Barrier(limit(t)); !errors.Is(err, barrier.ErrNodeDown) {
			t.Errorf("the other one: %v", err)
		}
	})
}

// A group of the same members is made, used and left again and again; messages of a former one do
// not count.
func TestGroupsThatAreMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, 1, fault.Config{Loss: 0.1, Delay: 0.2, DelayMax: 10 * time.Millisecond}, 5)
		var entered [3]atomic.Int64
		var running sync.WaitGroup
		for k := range c.eps {
			running.Go(func() {
				for life := range int64(20) {
					g, err := c.services[k].Group(barrier.GroupConfig{})
					if err != nil {
						t.Error(err)
						return
					}
					entered[k].Store(life + 1)
					if err := g.Barrier(limit(t)); err != nil {
						t.Errorf("node %d, life %d: %v", k, life, err)
						return
					}
					for other := range entered {
						if entered[other].Load() <= life {
							t.Errorf("node %d, life %d: left before node %d entered", k, life, other)
						}
					}
					_ = g.Close()
				}
			})
		}
		running.Wait()
	})
}

// The release goes over both networks: a network that loses all frames costs nothing (MCD §3.3).
func TestRedundantRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, 2, fault.Config{}, 0)
		all := c.groups(t, barrier.GroupConfig{Algorithm: schedule.Redundant(schedule.Concurrent(), 2)})
		stages(t, all, 10, func(int, int) {})
		for k := 1; k < 4; k++ {
			c.faults[k][0].Cut(true) // where the release would come; entries of ranks 1 and 3 go over it, and are lost, too
		}
		c.faults[1][0].Cut(false)
		c.faults[3][0].Cut(false)
		stages(t, all, 10, func(int, int) {})
		for k, g := range all {
			if s := g.Stats(); s.Nacks != 0 {
				t.Errorf("node %d asked %d times", k, s.Nacks)
			}
		}
	})
}

// Members may make their groups long after others have entered the first barrier: those send
// nacks, and wait on.
func TestGroup_Late(t *testing.T) {
	for _, a := range []schedule.Algorithm{schedule.Shuffle(), schedule.Concurrent(), schedule.Star()} {
		c := bare(t, 3)
		late := &cluster{services: c.services[1:]}
		cfg := barrier.GroupConfig{Algorithm: a}
		early := group(t, c.services[0], cfg)
		ticket, err := early.Arrive()
		if err != nil {
			t.Fatal(err)
		}
		for early.Stats().Nacks < 3 {
			runtime.Gosched()
		}
		for _, g := range late.groups(t, cfg) {
			if _, err := g.Arrive(); err != nil {
				t.Fatal(err)
			}
		}
		if err := ticket.Wait(context.Background()); err != nil {
			t.Errorf("%v: %v", a, err)
		}
	}
}

func TestBarrierDoesNotAllocate(t *testing.T) {
	all := bare(t, 2).groups(t, barrier.GroupConfig{})
	mask := barrier.Options{Number: 9, Members: barrier.MaskOf(0, 1)}
	const rounds = 200
	var other sync.WaitGroup
	both := func(g *barrier.Group) error {
		return errors.Join(g.Barrier(context.Background()), g.BarrierWith(context.Background(), mask))
	}
	other.Go(func() {
		for range rounds + 1 { // AllocsPerRun runs once more, to warm up
			if err := both(all[1]); err != nil {
				t.Error(err)
			}
		}
	})
	allocs := testing.AllocsPerRun(rounds, func() {
		if err := both(all[0]); err != nil {
			t.Error(err)
		}
	})
	other.Wait()
	if allocs != 0 {
		t.Errorf("%v allocations for two barriers, want 0", allocs)
	}
}
