package vbft

import (
	"fmt"
	"math"
	"time"

	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// Change is the experiment of VFREC §5.2: each node of the lower half sends to its counterpart of the upper half as fast as it
// can, all on VID From. Then the pair of node 0 changes to VID To, one end after the other. In between, node 0's frames flood: its
// counterpart's acks still go by the old VID, and the switches hear of it on that one alone.
type Change struct {
	Network  ether.Config
	From, To transport.VID
	// Sender and Receiver are when node 0 and its counterpart change; they do at the same instant if these are equal.
	Sender, Receiver time.Duration
	Length           time.Duration // of the run
	Sample           time.Duration // of the bandwidth: over so long each
}

// ChangeResult is what came out.
type ChangeResult struct {
	Samples []ChangeSample
	Network ether.Counters
	Events  int // that the simulation took
}

// ChangeSample is what happened from At to the next sample.
type ChangeSample struct {
	At       time.Duration
	Received []int64 // bytes that each receiver's program got, from the counterpart of node 0 on
	Flooded  uint64  // how often a switch sent a frame everywhere
	Dropped  uint64  // frames that found a queue full
}

// Total returns what all receivers got, in bytes.
func (s *ChangeSample) Total() (sum int64) {
	for _, b := range s.Received {
		sum += b
	}
	return sum
}

func (c *Change) validate() error {
	t := c.Network.Topology
	switch {
	case t == nil || len(t.Hosts) < 2 || len(t.Hosts)%2 != 0:
		return fmt.Errorf("want a topology with an even number of hosts")
	case !hasVID(t, c.From) || !hasVID(t, c.To):
		return fmt.Errorf("VID %d to %d: not both in the topology", c.From, c.To)
	case c.Sample <= 0 || c.Length < c.Sample || c.Length > ether.MaxTime:
		return fmt.Errorf("%v in samples of %v (want at least one sample, and at most %v in all)", c.Length, c.Sample, ether.MaxTime)
	case c.Sender < 0 || c.Receiver < 0:
		return fmt.Errorf("a change before the start")
	}
	return nil
}

func hasVID(t *vlan.Topology, vid transport.VID) bool {
	for _, v := range t.VLANs {
		if v.VID == vid {
			return true
		}
	}
	return false
}

// Run runs the experiment.
func (c *Change) Run() (*ChangeResult, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("change: %w", err)
	}
	q := new(sim.Queue)
	n, err := ether.New(q, c.Network)
	if err != nil {
		return nil, fmt.Errorf("change: %w", err)
	}
	half := len(c.Network.Topology.Hosts) / 2
	for a := range half {
		n.SetRoute(vlan.Pair{A: a, B: a + half}, c.From)
	}
	q.At(mono.At(c.Sender), func() { n.SetVID(0, half, c.To) })
	q.At(mono.At(c.Receiver), func() { n.SetVID(half, 0, c.To) })
	flows := make([]*ether.Flow, half)
	for i := range flows {
		flows[i] = n.NewFlow(i, half+i, nil)
		flows[i].Send(math.MaxInt64)
	}
	return c.sample(q, n, flows), nil
}

func (c *Change) sample(q *sim.Queue, n *ether.Network, flows []*ether.Flow) *ChangeResult {
	r := new(ChangeResult)
	var before ether.Counters
	got := make([]int64, len(flows))
	for at := time.Duration(0); at+c.Sample <= c.Length; at += c.Sample {
		r.Events += q.Run(mono.At(at + c.Sample))
		s := ChangeSample{At: at, Received: make([]int64, len(flows))}
		for i, f := range flows {
			s.Received[i] = f.Received() - got[i]
			got[i] = f.Received()
		}
		now := n.Counters()
		s.Flooded, s.Dropped = now.Flooded-before.Flooded, now.Dropped-before.Dropped
		before = now
		r.Samples = append(r.Samples, s)
	}
	r.Network = n.Counters()
	return r
}
