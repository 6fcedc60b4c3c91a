//go:build linux

// Package grid runs clusters of real sockets under faults: a process for each node, each in a
// network namespace, on one kernel bridge. The faults of frames are transport/fault's, as not every
// kernel has netem; those of nodes and cables are real.
package grid

import (
	"math/rand/v2"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// Shape is what happens to frames, as package fault has it, and what that does not have.
type Shape struct {
	Loss, Corrupt, Truncate, Duplicate, Reorder float64
	Delay                                       time.Duration
	Burst                                       int           // a loss takes so many in a row
	On, Off                                     time.Duration // the cable is whole and cut in turns
}

// config is the fault link's.
func (s *Shape) config(rng *rand.Rand) fault.Config {
	cfg := fault.Config{
		Loss: s.Loss, Corrupt: s.Corrupt, Truncate: s.Truncate, Duplicate: s.Duplicate, Reorder: s.Reorder,
		DelayMin: s.Delay, DelayMax: s.Delay,
	}
	if s.Delay > 0 {
		cfg.Delay = 1
	}
	if s.Burst > 1 {
		begins := s.Loss / (float64(s.Burst)*(1-s.Loss) + s.Loss) // so that Loss of all frames are lost
		cfg.Loss = 1
		left, chance := 0, rand.New(rand.NewPCG(rng.Uint64(), 0))
		cfg.Match = func(*transport.Frame) bool {
			if left == 0 && chance.Float64() < begins {
				left = s.Burst
			}
			lost := left > 0
			left = max(left-1, 0)
			return lost
		}
	}
	return cfg
}

// startBlackhole cuts the cable again and again, until stop is called.
func (s *Shape) startBlackhole(l *fault.Link) (stop func()) {
	if s.Off == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	go func() { // until stop
		for {
			for _, cut := range []bool{false, true} {
				wait := s.On
				if cut {
					wait = s.Off
				}
				l.Cut(cut)
				select {
				case <-ended:
					l.Cut(false)
					return
				case <-time.After(wait):
				}
			}
		}
	}()
	return func() { close(ended) }
}

// Cell is one experiment.
type Cell struct {
	Name        string
	Shape       Shape
	Packet      bool          // by transport/packet; else by transport/ring
	PeerTimeout time.Duration // 0: longTimeout
	For         time.Duration // 0: a few seconds
	// Do is done to the cluster in the middle; it returns the dead, and those of which nothing is
	// expected.
	Do func(c *Cluster) (dead, unseen []int, err error)
}

const (
	longTimeout  = 10 * time.Second // longer than all that is not a death
	shortTimeout = 2 * time.Second
	startTimeout = time.Minute
)

// Cells are the grid's.
func Cells() []Cell {
	return []Cell{
		{Name: "all at once", Shape: Shape{Loss: .05, Corrupt: .05, Truncate: .02, Duplicate: .2, Reorder: .2}},
		{Name: "kill -9", PeerTimeout: shortTimeout, Do: kill(1)},
		{Name: "clean"},
		{Name: "clean, packet", Packet: true},
		{Name: "loss 30 %, bursts of 3", Shape: Shape{Loss: .3, Burst: 3}},
		{Name: "loss 2 %", Shape: Shape{Loss: .02}},
		{Name: "loss 10 %, packet", Shape: Shape{Loss: .1}, Packet: true},
		{Name: "corrupt 30 %", Shape: Shape{Corrupt: .3}},
		{Name: "corrupt 2 %", Shape: Shape{Corrupt: .02}},
		{Name: "truncate 10 %", Shape: Shape{Truncate: .1}},
		{Name: "duplicate 50 %", Shape: Shape{Duplicate: .5}},
		{Name: "reorder 30 %", Shape: Shape{Reorder: .3}},
		{Name: "delay 15 ms", Shape: Shape{Delay: 15 * time.Millisecond}},
		{Name: "delay 750 ms", Shape: Shape{Delay: 750 * time.Millisecond}, For: 8 * time.Second},
		{Name: "blackhole, 5 s on, 2 s off", Shape: Shape{On: 5 * time.Second, Off: 2 * time.Second},
			For: 9 * time.Second},
		{Name: "kill -9, loss 10 %", PeerTimeout: shortTimeout, Shape: Shape{Loss: .1}, Do: kill(1)},
		{Name: "kill -9 of two", PeerTimeout: shortTimeout, Do: kill(2)},
		{Name: "SIGSTOP for 1 s", PeerTimeout: shortTimeout + time.Second, Do: suspend(time.Second)},
		{Name: "SIGSTOP for good", PeerTimeout: shortTimeout, Do: suspend(0)},
		{Name: "link down for 1 s", Do: linkDown(time.Second)},
		{Name: "link down for 1 s, packet", Packet: true, Do: linkDown(time.Second)},
		{Name: "link down for good", PeerTimeout: shortTimeout, Do: linkDown(0)},
		{Name: "MAC change", Do: changeMAC},
		{Name: "a busy machine", Do: stealCPU},
	}
}
