package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
)

// checkAgreement checks the promise of package agreement: of two members that have decided on
// different sets, one is in the other's. And nobody is excluded who could be heard.
func (g *cluster) checkAgreement(group int) {
	var decided []*member
	for node := range g.sites {
		m := g.engine(node, group)
		if m == nil || slices.Contains(g.crashed, node) {
			continue
		}
		switch m.agree.State() {
		case agreement.Decided:
			decided = append(decided, m)
		case agreement.Excluded:
			if f := m.Agreed(); !g.parted && f.Reasons[slices.Index(f.Ranks, m.cfg.Rank)] != Left {
				g.broken("node %d is excluded: %v", node, m.Agreed())
			}
		}
	}
	for _, a := range decided {
		for _, b := range decided {
			if !slices.Equal(a.agree.Gone(), b.agree.Gone()) && !a.isGone(b.cfg.Rank) && !b.isGone(a.cfg.Rank) {
				g.broken("ranks %d and %d of group %d disagree: %v; %v", a.cfg.Rank, b.cfg.Rank, group, a.Agreed(), b.Agreed())
			}
		}
	}
}

// The network falls into parts for longer than the peer timeout, and is whole again, while nodes
// crash. All barriers end; members that decide on different sets are in each other's; and no
// barrier of the survivors' groups could be completed on both sides, as each needs all of its
// members.
func TestSimulation_Partitions(t *testing.T) {
	first := *simSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(runs(*simRuns)) {
				r := newRun(name, first+i)
				r.parted, r.leave, r.restarts = true, false, false
				r.barriers += 3
				r.slow = limit / 4
				for range 1 + r.rng.IntN(3) {
					r.After(r.upTo(2*limit), r.part)
				}
				if r.run(); r.wrong != "" {
					t.Fatalf("seed %d, %v: %s\nrepeat: go test ./barrier/internal/engine -run 'TestSimulation_Partitions/^%s$' -sim.runs=1 -sim.seed=%[1]d",
						first+i, r, r.wrong, name)
				}
			}
		})
	}
}

// part cuts the network in two for a while: all links between the parts, or, as broken switches do,
// some of them.
func (r *run) part() {
	part := r.rng.Perm(len(r.sites))[:r.rng.IntN(len(r.sites))]
	some := 1.0
	if r.often(.3) {
		some = r.rng.Float64()
	}
	var cuts [][2]int
	for _, a := range part {
		for b := range r.sites {
			if !slices.Contains(part, b) && r.often(some) {
				cuts = append(cuts, [2]int{a, b})
				r.net.Cut(a, b, true)
			}
		}
	}
	r.After(r.upTo(3*limit), func() {
		for _, c := range cuts {
			r.net.Cut(c[0], c[1], false)
		}
	})
}

// Some nodes die at once, or one after the other while the survivors agree. All survivors fail with
// the same set: those that died before, at least. The 99th percentile of the time from a single
// death to the last survivor's error is within 1.5 peer timeouts, and of several within five, at up
// to 30 % of loss: with a timeout of half a second, within a second.
func TestSimulation_Detection(t *testing.T) {
	const timeout = 500 * time.Millisecond
	first := *simSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for _, c := range []struct {
		name   string
		dying  int
		within time.Duration // the last death
		most   time.Duration
	}{
		{"one", 1, 0, 1 * time.Second},
		{"two at once", 2, 0, 2 * timeout},
		{"four at once", 4, 0, 2 * timeout},
		{"three, one after the other", 3, 2 * timeout, 5 * timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var times []time.Duration
			for i := range uint64(4 * runs(*simRuns)) {
				rng := rand.New(rand.NewPCG(first+i, 3))
				net := paper
				net.Nodes = c.dying + 1 + rng.IntN(16)
				net.Seed = first + i
				net.Faults.Loss = .3 * rng.Float64()
				net.Faults.Duplicate = .1
				net.Faults.Reorder = .1
				g := newClusterOf(algorithms[rng.IntN(len(algorithms))], net, timeout)
				took, err := g.die(rng, c.dying, c.within)
				if err != nil {
					t.Fatalf("seed %d, %d nodes, %v: %v", first+i, net.Nodes, g.sites[0].members[0].cfg.Algorithm, err)
				}
				times = append(times, took)
			}
			slices.Sort(times)
			p99 := times[len(times)*99/100]
			t.Logf("p50 %v, p99 %v, max %v", times[len(times)/2], p99, times[len(times)-1])
			if p99 > c.most {
				t.Errorf("seed %d: the 99th percentile is %v, want %v at most", first, p99, c.most)
			}
		})
	}
}

// die has nodes go through barriers until some die, and returns how long after the last death the
// last survivor has failed.
func (g *cluster) die(rng *rand.Rand, dying int, within time.Duration) (took time.Duration, err error) {
	failures := map[int]*Failure{}
	g.failed = func(node int, _ barrier, f *Failure) { failures[node] = f }
	g.repeat(1 << 30)
	dead := rng.Perm(len(g.sites))[:dying]
	var last time.Duration
	for _, node := range dead {
		at := 10 * time.Millisecond
		if within > 0 {
			at += time.Duration(rng.Int64N(int64(within)))
		}
		last = max(last, at)
		g.After(at, func() { g.crash(node) })
	}
	died := g.Now().Add(last)
	survivors := len(g.sites) - dying
	count := func() (n int) {
		for node := range failures {
			if !slices.Contains(dead, node) {
				n++
			}
		}
		return n
	}
	for until := died.Add(time.Minute); g.wrong == "" && count() < survivors && g.Now().Before(until) && g.Step(); {
	}
	g.checkAgreement(0)
	switch {
	case g.wrong != "":
		return 0, fmt.Errorf("%s", g.wrong)
	case count() < survivors:
		return 0, fmt.Errorf("%d of %d survivors have failed", count(), survivors)
	}
	return max(0, g.Now().Sub(died)), nil
}
