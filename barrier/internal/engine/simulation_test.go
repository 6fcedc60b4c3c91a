package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/simfault"
	"github.com/rawlane/rawlane/sim"
)

var (
	simRuns = flag.Int("sim.runs", 30, "simulated runs of each algorithm")
	simSeed = flag.Uint64("sim.seed", 0, "of the first run, the others count on from it; 0 is a random one")
)

// runs is how many of n runs are made: a core without goroutines gains little by the race detector,
// which is what -short is used with.
func runs(n int) int {
	if testing.Short() {
		return (n + 9) / 10
	}
	return n
}

// Groups of up to 64 nodes lose, double, reorder and delay their messages, pause, enter late
// and, in some runs, crash and begin anew. No node leaves a barrier that another one has not entered,
// or has left with its former self; all barriers end; and they fail through nodes that have crashed
// or have said goodbye, and no others.
func TestSimulation(t *testing.T) {
	first := *simSeed
	if first == 0 {
		first = rand.Uint64()
	}
	for _, name := range algorithms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := 0
			sum := simfault.Figures{}
			for i := range uint64(runs(*simRuns)) {
				for _, r := range []*run{newRun(name, first+i), newRestartRun(name, first+i)} {
					events += r.run()
					if r.wrong != "" {
						t.Fatalf("seed %d, %v: %s\nrepeat: go test ./barrier/internal/engine -run 'TestSimulation/^%s$' -sim.runs=1 -sim.seed=%[1]d",
							first+i, r, r.wrong, name)
					}
					r.addTo(sum)
					sum["runs"]++
				}
			}
			sum["events"] = uint64(events)
			t.Logf("figures %v", sum)
		})
	}
}

// With a generation's lowest bit alone, a message that is two barriers late lets a node out early.
func TestSimulation_FindsAPlantedBug(t *testing.T) {
	const most = 10_000
	events := 0
	for seed := range uint64(most) {
		r := newRun("shuffle", seed+1)
		for node := range r.sites {
			for _, m := range r.sites[node].members {
				m.parityOnly = true
			}
		}
		if events += r.run(); r.wrong != "" {
			t.Logf("found in run %d, after %d events: %s", seed+1, events, r.wrong)
			return
		}
	}
	t.Errorf("not found in %d runs, %d events", most, events)
}

// run is a cluster with programs: each node goes through some barriers of each of several numbers
// and groups.
type run struct {
	*cluster
	rng        *rand.Rand
	barriers   uint32
	programs   []barrier // each node has one for each of these, if it is a member
	faults     sim.Faults
	slow       time.Duration // work between barriers, at most
	pauses     bool
	crashes    int
	restarts   bool          // of those that have crashed
	downtime   time.Duration // of a node that restarts, at most
	patience   time.Duration // of a node that has restarted, whose barriers nobody else may enter; 0: it waits
	lives      []int         // by node
	unfinished int           // programs of nodes
	done       []int         // by node: programs that it has finished
	cuts       int           // paths that are cut for a while, one way or both
	jumps      int           // clocks that jump ahead
	nemesis
}

const limit = DefaultPeerTimeout

func newRun(algo string, seed uint64) *run {
	r := &run{rng: rand.New(rand.NewPCG(seed, 1))}
	n := 1 + r.rng.IntN(64)
	if r.often(.5) {
		n = 1 + r.rng.IntN(9)
	}
	r.barriers = 1 + r.rng.Uint32N(6)
	r.choose(algo, n, seed)
	if r.often(.3) {
		r.join(algo, 1, r.someNodes(n))
	}
	r.choosePrograms()
	r.restarts = r.often(.5)
	r.chooseNemesis(n)
	return r
}

// newLargeRun is a cluster of n nodes, all of which go through one barrier a few times.
func newLargeRun(algo string, seed uint64, n int) *run {
	r := &run{rng: rand.New(rand.NewPCG(seed, 1))}
	r.barriers = 2 + r.rng.Uint32N(3)
	r.choose(algo, n, seed)
	r.programs = []barrier{{0, 0}}
	r.restarts = r.often(.5)
	r.chooseNemesis(n)
	return r
}

// choose draws what happens to a cluster of n nodes, and makes it.
func (r *run) choose(algo string, n int, seed uint64) {
	r.slow = time.Duration(r.rng.Int64N(int64(5 * time.Millisecond)))
	if r.often(.2) {
		r.slow = limit / 4 // with a pause, less than a mutual wait may last
	}
	r.faults = r.someFaults()
	r.pauses = r.often(.3)
	if n > 1 && r.often(.3) {
		r.crashes = 1 + r.rng.IntN(min(3, n-1))
	}
	leave := r.crashes == 0 && r.often(.5)
	r.build(algo, n, seed)
	r.leave = leave
}

// build makes the cluster.
func (r *run) build(algo string, n int, seed uint64) {
	net := paper
	net.Nodes, net.Faults, net.Seed = n, r.faults, seed
	r.cluster = newCluster(algo, net)
	r.done, r.lives = make([]int, n), make([]int, n)
}

// String describes the run.
func (r *run) String() string {
	return fmt.Sprintf("%v, %d nodes, %d barriers of %v, work up to %v, faults %+v, pauses %t, goodbyes %t, %d crashes, restarts %t, %d cuts, %d jumps, points %t",
		r.engine(0, 0).cfg.Algorithm, len(r.sites), r.barriers, r.programs, r.slow, r.faults, r.pauses, r.leave, r.crashes, r.restarts, r.cuts, r.jumps, r.points != nil)
}

func (r *run) often(p float64) bool { return r.rng.Float64() < p }

func (r *run) upTo(d time.Duration) time.Duration { return time.Duration(r.rng.Int64N(int64(d) + 1)) }

// choosePrograms chooses some numbers for each group; the groups may use the same ones.
func (r *run) choosePrograms() {
	for _, n := range r.rng.Perm(Numbers)[:1+r.rng.IntN(4)] {
		r.programs = append(r.programs, barrier{0, uint8(n)})
	}
	for _, b := range slices.Clone(r.programs) {
		if r.often(.7) && r.members(1) > 0 {
			r.programs = append(r.programs, barrier{1, b.number})
		}
	}
}

// someNodes returns some of n nodes in random order, at least two if n allows.
func (r *run) someNodes(n int) []int { return r.rng.Perm(n)[:min(n, 2+r.rng.IntN(n))] }

// members returns how many nodes are in a group.
func (r *run) members(group int) (count int) {
	for node := range r.sites {
		if r.engine(node, group) != nil {
			count++
		}
	}
	return count
}

// of returns the programs of a node.
func (r *run) of(node int) (own []barrier) {
	for _, b := range r.programs {
		if r.engine(node, b.group) != nil {
			own = append(own, b)
		}
	}
	return own
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
	f.Misroute = .02 * r.rng.Float64()
	if r.often(.3) {
		f.Burst = 1 + r.rng.IntN(8)
		f.Loss /= float64(f.Burst)
	}
	if r.often(.1) {
		f.DelayBy, f.Delay = r.upTo(5*time.Second), .02*r.rng.Float64()
	}
	if r.often(.2) {
		f.Ring = 16 + r.rng.IntN(64)
	}
	return f
}

// run runs the cluster to its end, and returns the number of events.
func (r *run) run() int {
	r.left = func(node int, b barrier) {
		if _, generation := r.engine(node, b.group).State(b.number); generation == r.barriers {
			r.finish(node)
		} else {
			r.work(node, b)
		}
	}
	r.failed = func(node int, b barrier, f *Failure) {
		if r.leave && r.crashes == 0 && r.neededNobody(node, b, f) {
			r.broken("node %d, %v: failed: %v, of whom each has completed it, and said so", node, b, f)
		}
		for i := range f.Ranks {
			if why := f.Reasons[i]; why != Silent && (why != Restarted || !r.restarts) && (why != Left || !r.leave) {
				r.broken("node %d, %v: failed: %v", node, b, f)
			}
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
	r.unleash()
	return r.whole()
}

// neededNobody reports whether a barrier has failed through members that have left alone, which have
// completed it, and whose goodbyes have arrived.
func (r *run) neededNobody(node int, b barrier, f *Failure) bool {
	m := r.engine(node, b.group)
	_, generation := m.State(b.number)
	for i, rank := range f.Ranks {
		state, completed := r.engine(m.nodes[rank], b.group).State(b.number)
		if state != Idle {
			completed--
		}
		if f.Reasons[i] != Left || !m.peers[rank].left || int32(completed-generation) < 0 {
			return false
		}
	}
	return true
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
	for group := range 2 {
		r.checkAgreement(group)
	}
	return events
}

// stuck lists the nodes that wait, and the ranks awaited.
func (r *run) stuck() (who []string) {
	for node := range r.sites {
		for _, b := range r.of(node) {
			m := r.engine(node, b.group)
			state, generation := m.State(b.number)
			if state == Waiting && r.net.Alive(node) {
				who = append(who, fmt.Sprintf("node %d in %d of %v for ranks %v", node, generation, b, m.Missing(b.number, nil)))
			}
		}
	}
	return who
}

// begin begins a node's programs.
func (r *run) begin(node int) {
	for _, b := range r.of(node) {
		r.unfinished++
		r.work(node, b)
	}
}

// work has a node compute for a while, and then enter a barrier if it still lives.
func (r *run) work(node int, b barrier) {
	life := r.lives[node]
	r.After(r.upTo(r.slow), func() {
		if life == r.lives[node] {
			r.arrive(node, b)
		}
	})
}

func (r *run) pause(node int) {
	r.net.Pause(node, r.upTo(limit/2-1))
	r.After(limit+r.upTo(limit), func() { r.pause(node) })
}

// crashOne ends a node, but not the last one.
func (r *run) crashOne() {
	if node := r.rng.IntN(len(r.sites)); r.mortal(node) {
		r.crashThis(node)
	}
}

// mortal reports whether a node lives and may crash.
func (r *run) mortal(node int) bool { return r.net.Alive(node) && len(r.crashed)+1 < len(r.sites) }

func (r *run) crashThis(node int) {
	r.unfinished -= len(r.of(node)) - r.done[node]
	r.crash(node)
	r.lives[node]++
	if r.restarts {
		r.After(r.upTo(r.downtime), func() { r.restartThis(node) })
	}
}

// restartThis begins a node anew. What a switch has kept of its former life is lost, unless frames may be
// stale.
func (r *run) restartThis(node int) {
	if !r.stale {
		r.kept = slices.DeleteFunc(r.kept, func(f simfault.Frame) bool { return f.To == node || f.From == node })
	}
	r.done[node] = 0
	r.restart(node)
	r.begin(node)
	if life := r.lives[node]; r.patience > 0 {
		r.After(r.patience, func() {
			if life == r.lives[node] {
				r.lives[node]++ // what it still waits for has ended
				r.unfinished -= len(r.of(node)) - r.done[node]
				r.done[node] = len(r.of(node))
				r.goodbye(node, r.lives[node], r.Now().Add(50*time.Millisecond))
			}
		})
	}
}

// finish notes that a node has finished a program.
func (r *run) finish(node int) {
	r.unfinished--
	if r.done[node]++; r.leave && r.done[node] == len(r.of(node)) {
		r.goodbye(node, r.lives[node], r.Now().Add(50*time.Millisecond))
	}
}

// goodbye says bye until all members have answered, or until an instant.
func (r *run) goodbye(node, life int, until monotime.Time) {
	r.net.Work(node, 0, func() {
		if life != r.lives[node] {
			return
		}
		heard := true
		for _, m := range r.sites[node].members {
			if out := m.Leave(nil); len(out) == 0 || !r.Now().Before(until) {
				m.left = true
			} else {
				m.flush(out)
				heard = false
			}
		}
		if !heard {
			r.After(3*time.Millisecond, func() { r.goodbye(node, life, until) })
		}
	})
}
