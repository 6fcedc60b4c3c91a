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
// thread on each core times a piece of work that has many branches, again and again, and a result
// that was slowed does not count where all rows of its table have others.

const (
	probeEvery = 40 * time.Millisecond // four times as often moved the 99th percentile
	probeTries = 5                     // the first three find cold caches
	probeItems = 300                   // take 4 us
	// slowedFrom is how much longer than the quickest probe those of a slowed result take, at the
	// mean: a third of its time or more had a slow core. Its clock alone makes 1.2.
	slowedFrom = 1.4
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
	cores []probes
	taken time.Time       // when take was called; or when the first probe may have begun
	last  []time.Duration // what it has returned
	rows  []*Row          // that have got results in a variant's turn
}

// probes are those of a core. Cores may be of different kinds.
type probes struct {
	quickest time.Duration // of all
	took     time.Duration // since take was called
	count    int           // likewise
}

// note takes a probe into account.
func (s *speedometer) note(core int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.cores) <= core {
		s.cores = append(s.cores, probes{quickest: math.MaxInt64})
	}
	c := &s.cores[core]
	c.quickest = min(c.quickest, took)
	c.took += took
	c.count++
}

// take returns each core's mean probe since the result before; 0 where nothing probes it.
func (s *speedometer) take() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.taken) < together {
		return s.last
	}
	s.taken, s.last = now, make([]time.Duration, len(s.cores))
	for k := range s.cores {
		c := &s.cores[k]
		s.last[k] = c.took / time.Duration(max(c.count, 1))
		c.took, c.count = 0, 0
	}
	return s.last
}

// isSlow reports whether one of the cores' mean probes is that of a slowed core.
func (s *speedometer) isSlow(means []time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, mean := range means {
		if float64(mean) > slowedFrom*float64(s.cores[k].quickest) {
			return true
		}
	}
	return false
}

// noteRow notes that a row has got a result.
func (s *speedometer) noteRow(r *Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.rows, r) {
		s.rows = append(s.rows, r)
	}
}

// takeRows returns the rows that have got results since the last call.
func (s *speedometer) takeRows() []*Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := s.rows
	s.rows = nil
	return rows
}

// watch probes the cores that this process may have, until the function that it returns is called.
func (s *speedometer) watch(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var threads sync.WaitGroup
	s.mu.Lock()
	s.taken, s.last = time.Now(), nil
	s.mu.Unlock()
	probed := cpuset.Allowed()
	for _, core := range probed[:min(len(probed), maxProbed)] {
		threads.Go(func() { s.probe(ctx, core) })
	}
	return func() { cancel(); threads.Wait() }
}

// probe probes a core until ctx ends, in a thread that others give way to, and that ends with it.
func (s *speedometer) probe(ctx context.Context, core int) {
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
		time.Sleep(probeEvery) // in the system's sleep the runtime looks at the thread every 20 us
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
