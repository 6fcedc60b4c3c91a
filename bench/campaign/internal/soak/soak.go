//go:build linux

// Package soak has two nodes of one process talk for a long time, on real sockets in namespaces of
// their own, and looks at whether memory, goroutines and descriptors stay as they are.
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
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// Sample is what the process has at one time.
type Sample struct {
	At                      time.Duration
	RSS                     uint64 // bytes
	Goroutines, Descriptors int
}

// Outcome is what a soak has come to.
type Outcome struct {
	Barriers, Puts uint64
	Samples        []Sample
}

const (
	nodes  = 2
	window = 1 << 16
	put    = 4000
)

// Run works for a time and takes samples, the first after a tenth of it: pools have grown by then.
func Run(ctx context.Context, length time.Duration) (o Outcome, err error) {
	bed, err := testbed.New(testbed.Config{Nodes: nodes})
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	var all [nodes]*node
	defer func() {
		for _, n := range all {
			if n != nil {
				err = errors.Join(err, n.ep.Close())
			}
		}
	}()
	for k := range all {
		if all[k], err = open(bed, k); err != nil {
			return o, err
		}
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [nodes]error
	var work sync.WaitGroup
	for k, n := range all {
		n.next = n.domain.Remote(all[1-k].window.Key())
		work.Go(func() {
			errs[k] = n.work(ctx, began.Add(length))
			if errs[k] != nil {
				cancel()
			}
		})
	}
	o.Samples = samples(ctx, began, length)
	work.Wait()
	o.Barriers, o.Puts = all[0].barriers, all[0].puts+all[1].puts
	return o, errors.Join(errs[:]...)
}

// samples takes ten of them.
func samples(ctx context.Context, began time.Time, length time.Duration) (all []Sample) {
	for i := 1; i < 10; i++ {
		select {
		case <-ctx.Done():
			return all
		case <-time.After(time.Until(began.Add(time.Duration(i) * length / 10))):
			all = append(all, measure(time.Since(began)))
		}
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

// node is one of the nodes.
type node struct {
	ep             *mcd.Endpoint
	group          *barrier.Group
	domain         *memfifo.Domain
	window         *memfifo.Window
	next           *memfifo.Remote
	barriers, puts uint64
	data           [put]byte
}

func open(bed *testbed.Bed, k int) (n *node, err error) {
	var l transport.Link
	if err := bed.Node(k).Do(func() (err error) {
		l, err = ring.Open(testbed.Interface(0), ring.Config{})
		return err
	}); err != nil {
		return nil, err
	}
	var table []mcd.Node
	for i := range nodes {
		table = append(table, mcd.Node{ID: mcd.NodeID(i), MACs: []transport.MAC{testbed.MAC(i, 0)}})
	}
	n = &node{}
	if n.ep, err = mcd.Open(mcd.Config{Cluster: 1, Node: mcd.NodeID(k), Nodes: table, Spin: -1}, l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	service, err := barrier.Open(n.ep, barrier.Config{})
	if err == nil {
		n.group, err = service.Group(barrier.GroupConfig{PeerTimeout: time.Minute})
	}
	if err == nil {
		n.domain, err = memfifo.Open(n.ep, memfifo.Config{PeerTimeout: time.Minute})
	}
	if err == nil {
		n.window, err = n.domain.Register(1, make([]byte, window), memfifo.All)
	}
	if err != nil {
		return nil, errors.Join(err, n.ep.Close())
	}
	return n, nil
}

// work puts, flushes, and goes through barriers until node 0 says that the time is over: by the
// window's first byte, which a barrier orders.
func (n *node) work(ctx context.Context, until time.Time) error {
	for {
		if n.ep.Node() == 0 && time.Now().After(until) {
			n.data[0] = 1
		}
		if err := n.next.Put(ctx, 0, n.data[:]); err != nil {
			return fmt.Errorf("put: %w", err)
		}
		if err := n.domain.Flush(ctx); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		n.puts++
		for turn := range 2 { // the second keeps a put away from who still reads
			if err := n.group.Barrier(ctx); err != nil {
				return fmt.Errorf("barrier: %w", err)
			}
			n.barriers++
			if turn == 0 && n.ep.Node() == 1 && n.window.Bytes()[0] == 1 {
				n.data[0] = 1
			}
		}
		if n.data[0] == 1 {
			return nil
		}
	}
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
