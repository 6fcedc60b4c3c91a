//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/ring"
)

// What a part opens ends with its process.

// openAll opens an endpoint on each of the links, which reach each other.
func openAll(links []transport.Link) ([]*mcd.Endpoint, error) {
	table := make([]mcd.Node, len(links))
	for k, l := range links {
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}}
	}
	all := make([]*mcd.Endpoint, len(links))
	for k, l := range links {
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table}, l)
		if err != nil {
			return nil, err
		}
		all[k] = ep
	}
	return all, nil
}

// onFabricOf opens endpoints on a switch in memory.
func onFabricOf(n int) ([]*mcd.Endpoint, error) {
	links, err := fabric.Links(n)
	if err != nil {
		return nil, err
	}
	all := make([]transport.Link, n)
	for k, l := range links {
		all[k] = l
	}
	return openAll(all)
}

func fabricPair() ([]*mcd.Endpoint, error) { return onFabricOf(2) }

// ringPair opens endpoints at both ends of a veth pair.
func ringPair() ([]*mcd.Endpoint, error) {
	bed, err := testbed.Open(testbed.Config{Nodes: 2})
	if err != nil {
		return nil, err
	}
	var links []transport.Link
	for k := range 2 {
		l, err := testbed.In(bed.Node(k), func() (*ring.Link, error) {
			return ring.Open(testbed.Interface(0), ring.Config{})
		})
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return openAll(links)
}

// domains opens endpoints, and remote memory on all of them.
func domains(open func() ([]*mcd.Endpoint, error)) ([]*memfifo.Domain, error) {
	eps, err := open()
	if err != nil {
		return nil, err
	}
	all := make([]*memfifo.Domain, len(eps))
	for k, ep := range eps {
		d, err := memfifo.Open(ep, memfifo.Config{})
		if err != nil {
			return nil, err
		}
		all[k] = d
	}
	return all, nil
}

// each runs f in so many goroutines, and returns when all have.
func each(n int, f func(k int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() { errs[k] = f(k) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// puts measures how long a Put of a size takes, of many that so many goroutines share, until all
// are in place: microseconds.
func puts(open func() ([]*mcd.Endpoint, error), callers, size int) func(context.Context, int) (float64, error) {
	return func(ctx context.Context, iters int) (float64, error) {
		ds, err := domains(open)
		if err != nil {
			return 0, err
		}
		w, err := ds[1].Register(1, make([]byte, size*callers), memfifo.All)
		if err != nil {
			return 0, err
		}
		to := ds[0].Remote(w.Key())
		share := func(iters int) error {
			var left atomic.Int64
			left.Store(int64(iters))
			err := each(callers, func(k int) error {
				for data := make([]byte, size); left.Add(-1) >= 0; {
					if err := to.Put(ctx, int64(k*size), data); err != nil {
						return err
					}
				}
				return nil
			})
			return errors.Join(err, ds[0].Flush(ctx))
		}
		if err := share(iters / 10); err != nil {
			return 0, err
		}
		begun := time.Now()
		err = share(iters)
		return inUS(time.Since(begun)) / float64(iters), err
	}
}

func inUS(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

const (
	settle  = time.Second     // until all readers wait, and what was delayed is over
	silence = 2 * time.Second // is measured
)

// idleFor returns how much of a core this process takes meanwhile, in percent.
func idleFor() (float64, error) {
	time.Sleep(settle)
	begun := time.Now()
	before, err1 := harness.Usage()
	time.Sleep(silence)
	after, err2 := harness.Usage()
	return 100 * float64(after.CPU-before.CPU) / float64(time.Since(begun)), errors.Join(err1, err2)
}

// idlePorts has a goroutine wait in Recv at each of many ports. Each gets a message in the end.
func idlePorts(ctx context.Context, _ int) (got float64, err error) {
	const perNode = 250 // of mcd.Ports, some are the other layers'
	eps, err := onFabricOf(manyReaders / perNode)
	if err != nil {
		return 0, err
	}
	var ports []*mcd.Port
	for _, ep := range eps {
		for id := range perNode {
			p, err := ep.OpenPort(mcd.PortID(id), mcd.PortOptions{})
			if err != nil {
				return 0, err
			}
			ports = append(ports, p)
		}
	}
	read := make(chan error, 1)
	go func() {
		read <- each(len(ports), func(k int) error { _, _, err := ports[k].Recv(ctx, make([]byte, 8)); return err })
	}()
	if got, err = idleFor(); err != nil {
		return 0, err
	}
	for k, p := range ports {
		from := ports[(k+perNode)%len(ports)] // of the next node
		if err := from.Send(ctx, p.Addr(), make([]byte, 8)); err != nil {
			return 0, err
		}
	}
	return got, <-read
}

// idleFIFOs has a goroutine wait in Pop at each of many FIFOs. Each gets a record in the end.
func idleFIFOs(ctx context.Context, _ int) (got float64, err error) {
	ds, err := domains(ringPair)
	if err != nil {
		return 0, err
	}
	fifos := make([]*memfifo.FIFO, manyReaders)
	for k := range fifos {
		if fifos[k], err = ds[1].NewFIFO(uint16(k), make([]byte, memfifo.MinFIFO)); err != nil {
			return 0, err
		}
	}
	read := make(chan error, 1)
	go func() {
		read <- each(len(fifos), func(k int) error { _, err := fifos[k].Pop(ctx, make([]byte, 8)); return err })
	}()
	if got, err = idleFor(); err != nil {
		return 0, err
	}
	for _, f := range fifos {
		if err := ds[0].Remote(f.Key()).Push(ctx, make([]byte, 8)); err != nil {
			return 0, err
		}
	}
	return got, <-read
}

// barriers measures barriers of many nodes, each a goroutine: microseconds for one.
func barriers(ctx context.Context, _ int) (float64, error) {
	eps, err := onFabricOf(manyNodes)
	if err != nil {
		return 0, err
	}
	groups := make([]*barrier.Group, len(eps))
	for k, ep := range eps {
		s, err := barrier.Open(ep, barrier.Config{})
		if err != nil {
			return 0, err
		}
		if groups[k], err = s.Group(barrier.GroupConfig{PeerTimeout: time.Minute}); err != nil {
			return 0, err
		}
	}
	const warmUp, counted = 2, 10
	var begun time.Time
	for _, n := range []int{warmUp, counted} {
		begun = time.Now()
		err := each(len(groups), func(k int) error {
			for range n {
				if err := groups[k].Barrier(ctx); err != nil {
					return fmt.Errorf("node %d: %w", k, err)
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return inUS(time.Since(begun)) / counted, nil
}

// choices measures how long it takes to choose an algorithm for many nodes, on one host and on many
// hosts, for the first time or again: microseconds, of the kind that takes longer.
func choices(first bool) func(context.Context, int) (float64, error) {
	return func(context.Context, int) (longest float64, _ error) {
		const perHost, tries = 8, 5
		spread := schedule.Shape{Of: make([]int, mostNodes)}
		for rank := range spread.Of {
			spread.Of[rank] = rank / perHost
		}
		for range mostNodes / perHost {
			spread.Hosts = append(spread.Hosts, schedule.Host{Cores: perHost, Local: schedule.MemoryCosts})
		}
		for _, s := range []schedule.Shape{schedule.OneHost(mostNodes, 2, schedule.KernelCosts), spread} {
			var took time.Duration
			for cores := range tries { // each is another shape
				s.Hosts[0].Cores = cores + 1
				if !first {
					s.Choose(mostNodes)
				}
				begun := time.Now()
				s.Choose(mostNodes)
				took += time.Since(begun)
			}
			longest = max(longest, inUS(took)/tries)
		}
		return longest, nil
	}
}
