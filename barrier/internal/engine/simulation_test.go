package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/sim"
)

var (
	simRuns = flag.Int("sim.runs", 30, "simulated runs of each algorithm")
	simSeed = flag.Uint64("sim.seed", 0, "of the first run, the others count on from it; 0 is a random one")
)

// Groups of up to 64 nodes that lose, double, reorder and delay their messages, pause, come late and, in some runs, crash.
// Nobody leaves a barrier that somebody has not entered; all barriers end; and they fail through nodes that have
// crashed and no others.
func TestSimulation(t *testing.T) {
	first := *simSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := 0
			for i := range uint64(*simRuns) {
				r := newRun(name, first+i)
				events += r.run()
				if r.wrong != "" {
					t.Fatalf("seed %d, %v: %s\nrepeat: go test ./barrier/internal/engine -run 'TestSimulation/^%s$' -sim.runs=1 -sim.seed=%[1]d",
						first+i, r, r.wrong, name)
				}
			}
			t.Logf("%d runs, %d events", *simRuns, events)
		})
	}
}

// With a generation's lowest bit alone, as MCD §2.3 has it, a message that is two barriers late lets somebody out early.
func TestSimulation_FindsAPlantedBug(t *testing.T) {
	const most = 10_000
	events := 0
	for seed := range uint64(most) {
		r := newRun("shuffle", seed+1)
		for node := range r.sites {
			r.engine(node).onlyColour = true
		}
		if events += r.run(); r.wrong != "" {
			t.Logf("found in run %d, after %d events: %s", seed+1, events, r.wrong)
			return
		}
	}
	t.Errorf("not found in %d runs, %d events", most, events)
}

// run is a group with a program: each node goes through some barriers of each of several numbers.
type run struct {
	*group
	rng        *rand.Rand
	barriers   uint32
	numbers    []uint8
	faults     sim.Faults
	slow       time.Duration // work between barriers, at most
	leave      bool          // who has finished says goodbye and forgets
	pauses     bool
	crashes    int
	restarts   bool  // of those that have crashed
	lives      []int // by node
	unfinished int   // numbers of nodes
	done       []int // by node: numbers that it has finished
}

const limit = DefaultLimit

func newRun(algo string, seed uint64) *run {
	r := &run{rng: rand.New(rand.NewPCG(seed, 1))}
	n := 1 + r.rng.IntN(64)
	if r.often(.5) {
		n = 1 + r.rng.IntN(9)
	}
	r.barriers = 1 + r.rng.Uint32N(6)
	r.numbers = numbers(r.rng)
	r.slow = time.Duration(r.rng.Int64N(int64(5 * time.Millisecond)))
	if r.often(.2) {
		r.slow = limit / 4 // with a pause, less than a mutual wait may last
	}
	r.faults = r.someFaults()
	r.pauses = r.often(.3)
	if n > 1 && r.often(.3) {
		r.crashes = 1 + r.rng.IntN(min(3, n-1))
	}
	r.leave = r.crashes == 0 && r.often(.5)
	net := paper
	net.Nodes, net.Faults, net.Seed = n, r.faults, seed
	r.group = newGroup(algo, net)
	r.restarts = r.often(.5)
	r.done, r.lives = make([]int, n), make([]int, n)
	return r
}

// String is what is special about the run.
func (r *run) String() string {
	return fmt.Sprintf("%v, %d nodes, %d barriers of numbers %v, work up to %v, faults %+v, pauses %t, goodbyes %t, %d crashes, restarts %t",
		r.engine(0).cfg.Algorithm, len(r.sites), r.barriers, r.numbers, r.slow, r.faults, r.pauses, r.leave, r.crashes, r.restarts)
}

func (r *run) often(p float64) bool { return r.rng.Float64() < p }

func (r *run) upTo(d time.Duration) time.Duration { return time.Duration(r.rng.Int64N(int64(d) + 1)) }

func numbers(rng *rand.Rand) (some []uint8) {
	for _, n := range rng.Perm(Numbers)[:1+rng.IntN(4)] {
		some = append(some, uint8(n))
	}
	return some
}

// someFaults lose up to 30 % of all frames, for one reason or the other.
func (r *run) someFaults() (f sim.Faults) {
	if r.often(.1) {
		return f
	}
	lost := .3 * r.rng.Float64()
	f.Corrupt = lost * r.rng.Float64() / 2
	f.Loss = lost - f.Corrupt
	f.Duplicate = .3 * r.rng.Float64()
	f.Reorder = .3 * r.rng.Float64()
	f.Delay = .3 * r.rng.Float64()
	f.DelayBy = r.upTo(20 * time.Millisecond)
	return f
}

// run runs it to its end, and returns how many events that took.
func (r *run) run() int {
	r.unfinished = len(r.sites) * len(r.numbers)
	r.left = func(node int, number uint8) {
		if _, generation := r.engine(node).State(number); generation == r.barriers {
			r.finish(node)
		} else {
			r.work(node, number)
		}
	}
	r.failed = func(node int, _ uint8, f Failure) {
		if f.Reason != Silent && (f.Reason != Restarted || !r.restarts) {
			r.broken("node %d: failed: %v", node, &f)
		}
		r.finish(node)
	}
	for node := range r.sites {
		r.begin(node)
		if r.pauses {
			r.After(r.upTo(limit), func() { r.pause(node) })
		}
	}
	for range r.crashes {
		r.After(r.upTo(r.expected()), r.crashOne)
	}
	return r.whole()
}

// expected is about how long the run takes.
func (r *run) expected() time.Duration {
	return time.Duration(r.barriers) * (r.slow + 2*time.Millisecond)
}

// whole runs all events until all programs have finished.
func (r *run) whole() (events int) {
	until := r.Now().Add(time.Duration(r.barriers)*(r.slow+30*time.Second) + time.Minute)
	for r.wrong == "" && r.unfinished > 0 && r.Now().Before(until) && r.Step() {
		events++
	}
	if r.wrong == "" && r.unfinished > 0 {
		r.broken("%d barriers have not ended: %v", r.unfinished, r.stuck())
	}
	return events
}

// stuck says who waits where, and for whom.
func (r *run) stuck() (who []string) {
	for node := range r.sites {
		for _, number := range r.numbers {
			state, generation := r.engine(node).State(number)
			if state == Waiting && r.net.Alive(node) {
				who = append(who, fmt.Sprintf("node %d in %d of %d for %v", node, generation, number, r.engine(node).Missing(number, nil)))
			}
		}
	}
	return who
}

// begin begins a node's programs.
func (r *run) begin(node int) {
	for _, number := range r.numbers {
		r.work(node, number)
	}
}

// work has a node do something else, and then enter a barrier, if it still lives.
func (r *run) work(node int, number uint8) {
	life := r.lives[node]
	r.After(r.upTo(r.slow), func() {
		if life == r.lives[node] {
			r.arrive(node, number)
		}
	})
}

func (r *run) pause(node int) {
	r.net.Pause(node, r.upTo(limit/2-1))
	r.After(limit+r.upTo(limit), func() { r.pause(node) })
}

// crashOne ends a node, but not the last one.
func (r *run) crashOne() {
	node := r.rng.IntN(len(r.sites))
	if !r.net.Alive(node) || len(r.crashed)+1 == len(r.sites) {
		return
	}
	r.unfinished -= len(r.numbers) - r.done[node]
	r.crash(node)
	r.lives[node]++
	if r.restarts {
		r.After(r.upTo(2*limit), func() {
			r.done[node] = 0
			r.unfinished += len(r.numbers)
			r.restart(node)
			r.begin(node)
		})
	}
}

// finish notes that a node has finished with a number.
func (r *run) finish(node int) {
	r.unfinished--
	if r.done[node]++; r.leave && r.done[node] == len(r.numbers) {
		r.goodbye(node, r.Now().Add(50*time.Millisecond))
	}
}

// goodbye says goodbye until all have answered, or it is time to go.
func (r *run) goodbye(node int, until mono.Time) {
	r.net.Work(node, 0, func() {
		m := r.engine(node)
		out := m.Leave(nil)
		if len(out) == 0 || !r.Now().Before(until) {
			m.left = true
			return
		}
		m.flush(out)
		r.After(3*time.Millisecond, func() { r.goodbye(node, until) })
	})
}
