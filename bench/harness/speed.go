//go:build linux

package harness

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/cpuset"
)

// A core of a shared machine is slower while another guest has its other hardware thread: for
// tenths of a second code of many branches takes 1.7 times as long, a system call 1.4 times, plain
// arithmetic 1.2 times. Programs that are compared then differ by how much of each they have. So a
// thread on each core times a piece of work that has many branches, again and again.
//
// The host also moves the cores about. Where two have no cache in common, a ball takes 330 ns there
// and back in place of 60, and to write over what the other core has read takes 4 times as long: a
// stream has a third of its rate. So the first two cores throw a ball to each other.
//
// A result that was slowed by either does not count where all rows of its table have as many
// others.

const (
	probeEvery = 40 * time.Millisecond // four times as often moved the 99th percentile
	probeTries = 5                     // the first three find cold caches
	probeItems = 300                   // take 4 us
	// slowedFrom is how much longer than the quickest probe those of a slowed result take, at the
	// mean: a third of its time or more had a slow core. Its clock alone makes 1.2.
	slowedFrom = 1.4
	// farFrom is the same for the ball: a fifth of the time or more had the cores far apart.
	farFrom = 2
	// maxProbed is how many cores are probed: programs are pinned to the first ones.
	maxProbed = 8
	// together is how close results are that a program has given together.
	together = 50 * time.Millisecond
)

// speed is that of the machine's cores. There is one machine, and one run that measures.
var speed = new(speedometer)

// speedometer keeps what the probes took.
type speedometer struct {
	mu    sync.Mutex
	cores []probes  // cores may be of different kinds
	throw probes    // between the first two
	taken time.Time // when take was called; or when the first probe may have begun
	last  pace      // what it has returned
	fresh bool      // take was not called in this turn
	by    *Variant  // whose turn it is
	rows  []*Row    // that have got results in the turn
}

// probes are those of a core, or of a pair.
type probes struct {
	quickest time.Duration // of all; 0 without any
	took     time.Duration // since take was called
	count    int           // likewise
}

// pace is how quick the cores were during a result: the mean probes, 0 where there were none.
type pace struct {
	cores []time.Duration
	throw time.Duration
}

func (p *probes) note(took time.Duration) {
	if p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
	p.took += took
	p.count++
}

// take returns the mean probe since the call before.
func (p *probes) take() time.Duration {
	mean := p.took / time.Duration(max(p.count, 1))
	p.took, p.count = 0, 0
	return mean
}

func (p *probes) isSlow(mean time.Duration, from float64) bool {
	return float64(mean) > from*float64(p.quickest)
}

// note takes a core's probe into account.
func (s *speedometer) note(core int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.cores) <= core {
		s.cores = append(s.cores, probes{})
	}
	s.cores[core].note(took)
}

// noteThrow takes a ball's way there and back into account.
func (s *speedometer) noteThrow(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.throw.note(took)
}

// begin begins a variant's turn: its results are not judged by what was probed before.
func (s *speedometer) begin(by *Variant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh, s.by, s.rows = true, by, nil
	s.throw.take()
	for k := range s.cores {
		s.cores[k].take()
	}
}

// take returns the pace since the result before, or the turn's beginning.
func (s *speedometer) take() pace {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.fresh && now.Sub(s.taken) < together {
		return s.last
	}
	s.fresh = false
	s.taken, s.last = now, pace{cores: make([]time.Duration, len(s.cores)), throw: s.throw.take()}
	for k := range s.cores {
		s.last.cores[k] = s.cores[k].take()
	}
	return s.last
}

// isSlow reports whether a pace is that of a slowed core, or of cores that are far apart.
func (s *speedometer) isSlow(p pace) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, mean := range p.cores {
		if s.cores[k].isSlow(mean, slowedFrom) {
			return true
		}
	}
	return s.throw.isSlow(p.throw, farFrom)
}

// noteRow notes that a row has got a result, and returns whose turn it is.
func (s *speedometer) noteRow(r *Row) *Variant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.rows, r) {
		s.rows = append(s.rows, r)
	}
	return s.by
}

// end ends a turn, and returns the rows that have got results in it.
func (s *speedometer) end() []*Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rows
	s.by, s.rows = nil, nil
	return rows
}

// watch probes the cores that this process may have, until the function that it returns is called.
func (s *speedometer) watch(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var threads sync.WaitGroup
	s.mu.Lock()
	s.taken, s.last, s.fresh = time.Now(), pace{}, true
	s.mu.Unlock()
	probed := cpuset.Allowed()
	game := &catch{begun: time.Now()}
	for k, core := range probed[:min(len(probed), maxProbed)] {
		threads.Go(func() { s.probe(ctx, core, k, game) })
	}
	return func() { cancel(); threads.Wait() }
}

// probe probes a core until ctx ends, in a thread that others give way to, and that ends with it.
// The first two cores play catch.
func (s *speedometer) probe(ctx context.Context, core, k int, game *catch) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(core)
	if unix.SchedSetaffinity(0, &one) != nil {
		return
	}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{ // without the privilege some probes are late
		Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
	}, 0)
	items := rand.New(rand.NewPCG(1, 2)).Perm(probeItems)
	memory := make([]int, probeItems)
	for ctx.Err() == nil {
		turn := game.await() // in the system's sleep the runtime looks at the thread every 20 us
		if took, ok := game.play(k, turn); ok {
			s.noteThrow(took)
		}
		took := time.Duration(math.MaxInt64)
		for range probeTries {
			copy(memory, items)
			start := time.Now()
			slices.Sort(memory)
			took = min(took, time.Since(start))
		}
		s.note(core, took)
	}
}
