//go:build linux

// Package soak has some nodes of one process talk for a long time, on real sockets in namespaces of
// their own and over links with faults, and looks at whether memory, goroutines and descriptors
// stay as they are.
package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/ring"
)

// Outcome is what a soak has come to.
type Outcome struct {
	Counts  map[string]uint64 // what was done, of all nodes together
	Faults  fault.Counts
	Cuts    uint64
	Samples []Sample
	Wrong   []string // broken promises
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

// stage is the nodes' endpoints, and what is wrong with their links.
type stage struct {
	bed   *testbed.Bed
	links [Nodes]*fault.Link
	eps   [Nodes]*mcd.Endpoint
}

func openStage() (s *stage, err error) {
	s = &stage{}
	if s.bed, err = testbed.New(testbed.Config{Nodes: Nodes}); err != nil {
		return nil, err
	}
	for k := range Nodes {
		if err := s.open(k); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *stage) open(k int) error {
	l, err := testbed.In(s.bed.Node(k), func() (*ring.Link, error) {
		return ring.Open(testbed.Interface(0), ring.Config{})
	})
	if err != nil {
		return err
	}
	if s.links[k], err = fault.New(l, rand.New(rand.NewPCG(uint64(k), 0)), faults); err != nil {
		return errors.Join(err, l.Close())
	}
	var table []mcd.Node
	for i := range Nodes {
		table = append(table, mcd.Node{ID: mcd.NodeID(i), MACs: []transport.MAC{testbed.MAC(i, 0)}})
	}
	s.eps[k], err = mcd.Open(mcd.Config{Cluster: 1, Node: mcd.NodeID(k), Nodes: table, Spin: -1}, s.links[k])
	if err != nil {
		err = errors.Join(err, s.links[k].Close())
	}
	return err
}

func (s *stage) close() (err error) {
	for _, ep := range s.eps {
		if ep != nil {
			err = errors.Join(err, ep.Close())
		}
	}
	return errors.Join(err, s.bed.Close())
}

// run has workers work, cuts cables, and takes samples. When the time is over it calls end, which
// has the workers return; the first that returns with an error ends the others' context.
func (s *stage) run(
	ctx context.Context, length time.Duration, workers []func(context.Context) error, measure func() Sample, end func(),
) (o Outcome, err error) {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(workers))
	var work, cutting sync.WaitGroup
	for i, f := range workers {
		work.Go(func() {
			if errs[i] = f(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	working, worked := context.WithCancel(ctx)
	cutting.Go(func() { o.Cuts = s.cut(working, length) })
	o.Samples = samples(ctx, began, length, measure)
	pause(ctx, time.Until(began.Add(length)))
	end()
	work.Wait()
	worked()
	cutting.Wait()
	o.Counts = map[string]uint64{}
	for _, l := range s.links {
		addFaults(&o.Faults, l.Counts())
	}
	return o, errors.Join(errs...)
}

func addFaults(sum *fault.Counts, c fault.Counts) {
	sum.Received += c.Received
	sum.Lost += c.Lost
	sum.Cut += c.Cut
	sum.Duplicated += c.Duplicated
	sum.Corrupted += c.Corrupted
	sum.Truncated += c.Truncated
	sum.Delayed += c.Delayed
	sum.Reordered += c.Reordered
}

// cut cuts the cable of one node after the other for a while, until ctx ends.
func (s *stage) cut(ctx context.Context, length time.Duration) (cuts uint64) {
	period := length / cutsPerSoak
	off := min(max(period/10, shortestCut), longestCut)
	for k := 0; ; k++ {
		l := s.links[k%Nodes]
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
