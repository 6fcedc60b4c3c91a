//go:build linux

// Package soak has some nodes of one process talk for a long time, on real sockets in namespaces of
// their own and over links with faults, and looks at whether memory, goroutines and descriptors
// stay as they are.
package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport/fault"
)

// Sample is what the process has at one time.
type Sample struct {
	At                      time.Duration
	RSS                     uint64 // bytes
	Goroutines, Descriptors int
}

// Outcome is what a soak has come to.
type Outcome struct {
	Barriers, Puts, Records uint64 // of all nodes together; a barrier counts once
	Faults                  fault.Counts
	Cuts                    uint64
	Samples                 []Sample
	Wrong                   []string // broken promises
}

// Nodes is how many nodes a soak has: a ring of neighbours in which none sees all of the traffic.
const Nodes = 4

// faults are those of each node's link, where frames arrive: of most kinds some each second, and so
// few that the nodes mostly work.
var faults = fault.Config{
	Loss: .005, Duplicate: .005, Reorder: .01, Corrupt: .002, Truncate: .002,
	Delay: .002, DelayMin: 100 * time.Microsecond, DelayMax: 2 * time.Millisecond,
}

const (
	cutsPerSoak = 100                    // cables that are cut for a while
	shortestCut = 20 * time.Millisecond  // and how long, at least
	longestCut  = 500 * time.Millisecond // far less than peers may be silent
	peerTimeout = time.Minute
)

// soak is a run.
type soak struct {
	all  [Nodes]*node
	last atomic.Uint64 // the round after which all nodes end; 0: not known yet
}

// Run works for a time and takes samples, the first after a tenth of it: pools have grown by then.
func Run(ctx context.Context, length time.Duration) (o Outcome, err error) {
	bed, err := testbed.New(testbed.Config{Nodes: Nodes})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	s := &soak{}
	defer func() {
		for _, n := range s.all {
			if n != nil {
				err = errors.Join(err, n.ep.Close())
			}
		}
	}()
	for k := range s.all {
		if s.all[k], err = open(bed, k); err != nil {
			return o, err
		}
	}
	s.meet()
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [Nodes]error
	var work, cutting sync.WaitGroup
	for k, n := range s.all {
		work.Go(func() {
			errs[k] = n.work(ctx, s, began.Add(length))
			if errs[k] != nil {
				cancel()
			}
		})
	}
	working, end := context.WithCancel(ctx)
	cutting.Go(func() { o.Cuts = s.cut(working, length) })
	o.Samples = samples(ctx, began, length)
	work.Wait()
	end()
	cutting.Wait()
	s.sum(&o)
	return o, errors.Join(errs[:]...)
}

// meet gives each node the keys of the next one.
func (s *soak) meet() {
	for k, n := range s.all {
		next := s.all[(k+1)%Nodes]
		n.next, n.queue = n.domain.Remote(next.window.Key()), n.domain.Remote(next.fifo.Key())
		n.before = (k + Nodes - 1) % Nodes
	}
}

// cut cuts the cable of one node after the other for a while, until ctx ends.
func (s *soak) cut(ctx context.Context, length time.Duration) (cuts uint64) {
	period := length / cutsPerSoak
	off := min(max(period/10, shortestCut), longestCut)
	for k := 0; ; k++ {
		l := s.all[k%Nodes].link
		if !pause(ctx, max(period-off, off)) {
			return cuts
		}
		cuts++
		l.Cut(true)
		again := pause(ctx, off)
		l.Cut(false)
		if !again {
			return cuts
		}
	}
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// sum adds up what the nodes have done.
func (s *soak) sum(o *Outcome) {
	o.Barriers = s.all[0].barriers
	for _, n := range s.all {
		o.Puts += n.puts
		o.Records += n.popped
		c := n.link.Counts()
		o.Faults.Received += c.Received
		o.Faults.Lost += c.Lost
		o.Faults.Cut += c.Cut
		o.Faults.Duplicated += c.Duplicated
		o.Faults.Corrupted += c.Corrupted
		o.Faults.Truncated += c.Truncated
		o.Faults.Delayed += c.Delayed
		o.Faults.Reordered += c.Reordered
		o.Wrong = append(o.Wrong, n.wrong...)
	}
}

// samples takes ten of them.
func samples(ctx context.Context, began time.Time, length time.Duration) (all []Sample) {
	for i := 1; i < 10; i++ {
		if !pause(ctx, time.Until(began.Add(time.Duration(i)*length/10))) {
			return all
		}
		all = append(all, measure(time.Since(began)))
	}
	return all
}

func measure(at time.Duration) Sample {
	debug.FreeOSMemory() // what is left is in use
	s := Sample{At: at, Goroutines: runtime.NumGoroutine()}
	var pages, resident uint64
	b, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Fscan(strings.NewReader(string(b)), &pages, &resident)
	}
	files, err2 := os.ReadDir("/proc/self/fd")
	if err := errors.Join(err, err2); err != nil {
		panic(err) // Linux has them
	}
	s.RSS, s.Descriptors = resident*uint64(os.Getpagesize()), len(files)
	return s
}

// Slope is how many bytes an hour the resident memory grows by, from the samples, by least squares.
func Slope(all []Sample) float64 {
	var n, t, m, tt, tm float64
	for _, s := range all {
		x, y := s.At.Hours(), float64(s.RSS)
		n, t, m, tt, tm = n+1, t+x, m+y, tt+x*x, tm+x*y
	}
	if d := n*tt - t*t; d > 0 {
		return (n*tm - t*m) / d
	}
	return 0
}

// Leaks reports how many goroutines and descriptors the last sample has more than the first.
func Leaks(all []Sample) (goroutines, descriptors int) {
	if len(all) == 0 {
		return 0, 0
	}
	first, last := all[0], all[len(all)-1]
	return last.Goroutines - first.Goroutines, last.Descriptors - first.Descriptors
}
