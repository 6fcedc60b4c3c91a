package reliable

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rawlane/rawlane/sim"
)

// run is a network of nodes that all send to each other.
type run struct {
	sim.Queue
	*model
	rng       *rand.Rand
	net       *sim.Network[[]byte]
	size      int
	start     uint32
	budget    int // records of each end and lane
	hold      float64
	longHolds bool
	faults    sim.Faults
	crashes   int
	cuts      int
	pauses    int
	nodes     []node
	events    uint64
	failures  uint64 // events that ended a connection
	byes      uint64 // of these, PeerClosed
	quiet     bool   // the last rounds: no holds, no faults
	nemesis
}

type node struct {
	peers  []*site // by peer; nil for itself
	starts int
	closed bool // it says byes
}

func newRun(seed uint64) *run {
	r := &run{model: &model{}, rng: rand.New(rand.NewPCG(seed, 2))}
	n := 2 + r.rng.IntN(3)
	if r.often(.2) {
		n = 2 + r.rng.IntN(15)
	}
	r.size = HeaderLen + 100 + r.rng.IntN(1400)
	r.start = 1
	if r.often(.5) {
		r.start = -r.rng.Uint32N(2000)
	}
	r.budget = 1 + r.rng.IntN(40_000/(n*n))
	r.hold = []float64{0, .0005, .005}[r.rng.IntN(3)]
	r.longHolds = r.often(.2)
	r.faults = r.someFaults()
	if r.often(.5) {
		r.crashes = r.rng.IntN(4)
		r.cuts = r.rng.IntN(4)
	}
	if r.often(.3) {
		r.pauses = r.rng.IntN(4)
	}
	r.nodes = make([]node, n)
	r.net = sim.NewNetwork(&r.Queue, sim.Config{
		Nodes: n, Os: time.Microsecond, Or: time.Microsecond, L: 20 * time.Microsecond, Faults: r.faults, Seed: seed,
	}, func(to, from, _ int, b []byte) { r.misreceive(r.nodes[to].peers[from], b) })
	r.chooseNemesis(n)
	for i := range r.nodes {
		r.boot(i)
	}
	return r
}

// String describes the run.
func (r *run) String() string {
	return fmt.Sprintf("%d nodes, frames of %d, %d records, from %d, holds %v (long %t), faults %+v, %d crashes, %d cuts, %d pauses, %d jumps, points %t",
		len(r.nodes), r.size, r.budget, r.start, r.hold, r.longHolds, r.faults, r.crashes, r.cuts, r.pauses, r.jumps, r.points)
}

func (r *run) often(p float64) bool { return r.rng.Float64() < p }

func (r *run) upTo(d time.Duration) time.Duration { return time.Duration(r.rng.Int64N(int64(d) + 1)) }

// someFaults returns up to 30 % of loss, and lets thousands of frames overtake one.
func (r *run) someFaults() (f sim.Faults) {
	if r.often(.2) {
		return f
	}
	lost := .3 * r.rng.Float64() * r.rng.Float64()
	if r.often(.2) {
		lost = .3
	}
	f.Corrupt = lost * r.rng.Float64() / 2
	f.Loss = lost - f.Corrupt
	f.Duplicate = .3 * r.rng.Float64() * r.rng.Float64()
	f.Reorder = .3 * r.rng.Float64() * r.rng.Float64()
	f.ReorderBy = r.upTo(2 * time.Millisecond)
	f.Delay = .05 * r.rng.Float64() * r.rng.Float64()
	f.DelayBy = r.upTo(300 * time.Millisecond)
	f.Misroute = .02 * r.rng.Float64() * r.rng.Float64()
	if r.often(.3) {
		f.Burst = 1 + r.rng.IntN(8)
		f.Loss /= float64(f.Burst)
	}
	if r.often(.2) {
		f.Ring = 64 + r.rng.IntN(512)
	}
	return f
}

// run runs the simulation: first with faults, then without, until every node has received a record
// from every other.
func (r *run) run() {
	for range r.crashes {
		r.After(r.upTo(20*time.Millisecond), r.crash)
	}
	for range r.cuts {
		r.After(r.upTo(20*time.Millisecond), r.cut)
	}
	for range r.pauses {
		r.After(r.upTo(20*time.Millisecond), func() { r.net.Pause(r.rng.IntN(len(r.nodes)), r.upTo(DefaultPeerTimeout/2)) })
	}
	r.unleash()
	r.drain(10 * time.Minute)
	if r.wrong == "" && r.crashes == 0 && r.cuts == 0 && r.failures > 0 {
		r.fail("%d failures without a cause", r.failures)
	}
	r.quiet, r.points = true, false
	r.net.SetFaults(sim.Faults{})
	began := ^uint64(0)
	for round := 0; r.wrong == "" && began != r.failures; round++ {
		if round > 4 {
			r.fail("failures do not end")
		}
		began = r.failures
		r.each(func(s *site) {
			s.left = [Lanes]int{1, 1}
			s.produce()
		})
		r.drain(10 * time.Second)
	}
	r.each(func(s *site) { s.finished() })
}

// mostEvents is ten times what the longest run needs.
const mostEvents = 3_000_000

// drain runs until nothing is left to happen.
func (r *run) drain(most time.Duration) {
	until := r.Now().Add(most)
	for r.wrong == "" && r.Now().Before(until) && r.events < mostEvents && r.Step() {
		r.events++
	}
	if r.events >= mostEvents {
		r.fail("a storm: %d events by %v, %+v", r.events, r.Now().Since(), r.net.Counters())
	}
	if r.wrong == "" && r.Len() > 0 {
		r.each(func(s *site) {
			if at, ok := s.c.Deadline(); ok {
				r.fail("after %v, %d to %d, %v: not idle: until %v, done %t, left %v, %+v",
					r.Now().Since(), s.node, s.peer, s.c.state, at.Since(), s.done(), s.left, *s.c.cfg.Counters)
			}
		})
		r.fail("after %v %d events wait", r.Now().Since(), r.Len())
	}
}

func (r *run) each(f func(s *site)) {
	for i := range r.nodes {
		for _, s := range r.nodes[i].peers {
			if s != nil && r.net.Alive(i) {
				f(s)
			}
		}
	}
}

// boot starts a node, with nothing.
func (r *run) boot(i int) {
	r.nodes[i].starts++
	r.nodes[i].closed = false
	r.nodes[i].peers = make([]*site, len(r.nodes))
	for peer := range r.nodes {
		if peer != i {
			r.nodes[i].peers[peer] = r.newSite(i, peer)
		}
	}
}

// crash ends a node, with a bye or without one, and restarts it later or at once.
func (r *run) crash() {
	i := r.rng.IntN(len(r.nodes))
	if !r.net.Alive(i) || r.nodes[i].closed {
		return
	}
	if r.often(.5) {
		r.crashNow(i)
		return
	}
	r.nodes[i].closed = true
	for _, s := range r.nodes[i].peers {
		if s != nil {
			s.c.Close()
			s.leaving = true
			s.pump()
		}
	}
	life := r.nodes[i].starts
	end := func() {
		if r.nodes[i].starts == life && r.net.Alive(i) { // else it has crashed meanwhile
			r.crashNow(i)
		}
	}
	if r.often(.5) {
		r.After(r.upTo(time.Millisecond), end)
		return
	}
	leaving := r.nodes[i].peers
	r.After(maxByes*DefaultPeerTimeout/minRetries+DefaultPeerTimeout, func() { // longer than the longest pause
		for _, s := range leaving {
			if s != nil && !s.dead && s.c.state != Idle {
				r.fail("%d still says bye to %d", s.node, s.peer)
			}
		}
		end()
	})
}

func (r *run) crashNow(i int) {
	for _, s := range r.nodes[i].peers {
		if s != nil {
			s.dead = true
		}
	}
	r.net.Crash(i)
	r.After(r.upTo([]time.Duration{0, time.Millisecond, 2 * DefaultPeerTimeout}[r.rng.IntN(3)]), func() {
		r.net.Restart(i)
		r.boot(i)
	})
}

// cut separates two nodes for a while.
func (r *run) cut() {
	a := r.rng.IntN(len(r.nodes))
	b := (a + 1 + r.rng.IntN(len(r.nodes)-1)) % len(r.nodes)
	cut := r.net.CutOneWay
	if r.often(.5) {
		cut = r.net.Cut
	}
	cut(a, b, true)
	r.After(r.upTo(2*DefaultPeerTimeout), func() { cut(a, b, false) })
}
