package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// standsStill has rank 0 stand still, until the last rank, which alone waits for it, and has never
// heard of it, has found it down. All others go on; rank 0 has more than a PeerTimeout less to wait.
func standsStill(t *testing.T, n int, then func(ctx context.Context, c *mpi.Comm)) {
	t.Helper()
	mortal(t, n, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all.died.Store(0, true)
		all.died.Store(n-1, true) // to rank 0
		switch c.Rank() {
		case 0:
			all.links[0].Cut(true)
			time.Sleep(3 * time.Second)
			all.links[0].Cut(false)
		case n - 1:
			if _, err := mpi.Recv(ctx, c, []byte{1}, 0, 0); !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("of one that stands still: %v", err)
			}
		}
		time.Sleep(3 * time.Second)
		then(ctx, c)
		time.Sleep(time.Second)
	})
}

// A process that has stood still hears from the first one that it waits for that it was found down,
// also if neither has heard of the other before.
func TestDown_TellsWhoStoodStill(t *testing.T) {
	for what, wait := range map[string]func(ctx context.Context, c *mpi.Comm) error{
		"receive": func(ctx context.Context, c *mpi.Comm) error { return second(mpi.Recv(ctx, c, []byte{1}, 1, 0)) },
		"any": func(ctx context.Context, c *mpi.Comm) error {
			return second(mpi.Recv(ctx, c, []byte{1}, mpi.AnySource, 0))
		},
		"probe": func(ctx context.Context, c *mpi.Comm) error { return second(c.Probe(ctx, 1, 0)) },
		"send":  func(ctx context.Context, c *mpi.Comm) error { return mpi.Ssend(ctx, c, []byte{1}, 1, 0) },
	} {
		standsStill(t, 2, func(ctx context.Context, c *mpi.Comm) {
			if c.Rank() > 0 {
				return
			}
			if err := wait(ctx, c); !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// Where one process has found another one down that lives, and is not down to a third one, all agree
// who is out.
func TestAgree_WhereOneHasFoundAnotherDown(t *testing.T) {
	standsStill(t, 3, func(ctx context.Context, c *mpi.Comm) {
		_, err := c.Agree(ctx, 1)
		if got := named(err); !slices.Equal(got, []int{2}) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	})
}

// A process that all others have given up does not agree alone: it is out, and hears so. But where
// it hears first that the other one has begun a connection anew, as one that has restarted does, it
// is alone.
func TestAgree_GivenUpByAll(t *testing.T) {
	standsStill(t, 2, func(ctx context.Context, c *mpi.Comm) {
		_, err := c.Agree(ctx, 1)
		want := 0
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); ok && down.Reason == memfifo.Restarted && c.Rank() == 0 {
			want = 1
		}
		if got := named(err); !slices.Equal(got, []int{want}) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	})
}

// A process that a barrier has left out, as it could not be heard, is not down to itself: it is told
// that it is out, and uses what is its own.
func TestBarrier_LeftOut(t *testing.T) {
	mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		ctx, me := t.Context(), c.Rank()
		own, err := c.Split(ctx, me, 0)
		must(t, err)
		must(t, c.Barrier(ctx))
		for rank := range 3 {
			all.died.Store(rank, true) // World.Close may say that it is down to somebody
		}
		if me == 2 {
			all.links[me].Cut(true)
			time.Sleep(5 * time.Second)
			all.links[me].Cut(false)
		}
		if err := c.Barrier(ctx); !slices.Equal(named(err), []int{2}) {
			t.Errorf("rank %d: barrier: %v", me, err)
		}
		_, err = c.Agree(ctx, 1)
		if got := named(err); !slices.Equal(got, []int{2}) {
			t.Errorf("rank %d: agree: %v", me, err)
		}
		win, err := mpi.NewWin(ctx, own, make([]int32, 1))
		must(t, err)
		must(t, win.Fence(ctx))
		must(t, win.Free(ctx))
	})
}

// Random programs of agreements, between which and during which processes stand still for about a
// PeerTimeout. All waits end; who is out is told so, or agrees alone or with some that are as well;
// of two that have agreed on different things, each is down to one that has agreed with the other.
func TestAgree_ModelOfStandingStill(t *testing.T) {
	eachSeed(t, "agree", *agreeSeed, *agreeRuns, runStandingStill)
}

func runStandingStill(t *testing.T, seed uint64) {
	program := rand.New(rand.NewPCG(seed, 1))
	n, calls := 2+program.IntN(5), 1+program.IntN(4)
	faults := fault.Config{}
	if program.IntN(2) == 0 {
		faults = fault.Config{Loss: .05, Duplicate: .05, Reorder: .1, Delay: .1, DelayMax: time.Millisecond}
	}
	type pause struct{ at, length time.Duration }
	pauses := make([]pause, n)
	for range 1 + program.IntN(n) {
		pauses[program.IntN(n)] = pause{
			at:     time.Duration(program.IntN(4000)) * time.Millisecond,
			length: time.Duration(200+program.IntN(2800)) * time.Millisecond,
		}
	}
	type outcome struct {
		result string
		down   []int
	}
	var mu sync.Mutex
	outcomes := make([][]outcome, n) // by rank
	mortal(t, n, faults, func(t *testing.T, c *mpi.Comm, all *mortals) {
		me := c.Rank()
		all.died.Store(me, true) // World.Close may say that it is down to somebody
		random := rand.New(rand.NewPCG(seed, uint64(me)+2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if p := pauses[me]; p.length > 0 {
			time.AfterFunc(p.at, func() { all.links[me].Cut(true) })
			time.AfterFunc(p.at+p.length, func() { all.links[me].Cut(false) })
		}
		for k := range calls {
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
			flags, err := c.Agree(ctx, random.Uint64()|random.Uint64())
			out := named(err)
			if err != nil && !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("rank %d, agreement %d: %v", me, k, err)
			}
			if slices.Equal(out, []int{me}) {
				break
			}
			mu.Lock()
			outcomes[me] = append(outcomes[me], outcome{fmt.Sprint(flags, out), c.Failed()})
			mu.Unlock()
		}
		time.Sleep(90 * time.Second) // others may ask
	})
	apart := func(k, a, b int) bool { // b is down to one that has what a has
		return slices.ContainsFunc(outcomes, func(of []outcome) bool {
			return len(of) > k && of[k].result == outcomes[a][k].result && slices.Contains(of[k].down, b)
		})
	}
	for a := range outcomes {
		for b := range a {
			for k := range min(len(outcomes[a]), len(outcomes[b])) {
				one, other := outcomes[a][k].result, outcomes[b][k].result
				if one != other && (!apart(k, a, b) || !apart(k, b, a)) {
					t.Errorf("agreement %d: rank %d has %s, rank %d %s", k, a, one, b, other)
				}
			}
		}
	}
}
