package vbft

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
	"github.com/rawlane/rawlane/sim/ether"
	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Change is an experiment: each host of the lower half sends to its counterpart in the upper half
// as fast as it can, all on one VID. Then host 0 sends on another, and later its counterpart
// answers on that one, too. In between, host 0's frames flood, as the switches have learned its
// counterpart on the old VID only.
//
// Source: VFREC §5.2.
type Change struct {
	Network  ether.Config
	Old, New transport.VID
	// Sender and Receiver are when host 0 and its counterpart change their routes. Equal values are
	// a change behind a barrier.
	Sender, Receiver time.Duration
	Length           time.Duration // of the run; a whole number of samples
	Sample           time.Duration // over which bandwidth is measured
}

// ChangeSample is what happened from At to the next sample.
type ChangeSample struct {
	At       time.Duration
	Received []int64 // bytes for each receiver, host 0's counterpart first
	Flooded  uint64  // forwarding decisions without a learned address
	Dropped  uint64  // by full queues
}

// Total returns the bytes of all receivers.
func (s *ChangeSample) Total() (sum int64) {
	for _, b := range s.Received {
		sum += b
	}
	return sum
}

// Run runs the experiment, and calls each with every sample, and check, which may be nil, now and
// then, as CG.Run does. An error of theirs ends the run, and is returned; other errors say what is
// wrong with c.
func (c *Change) Run(check func() error, each func(ChangeSample) error) error {
	q, n, err := c.start()
	if err != nil {
		return fmt.Errorf("change: %w", err)
	}
	half := len(c.Network.Topology.Hosts) / 2
	flows := make([]*ether.Flow, half)
	for i := range flows {
		n.SetRoute(plan.Pair{A: i, B: half + i}, c.Old)
		flows[i] = n.NewFlow(i, half+i, nil)
		flows[i].Send(math.MaxInt64)
	}
	q.At(monotime.At(c.Sender), func() { n.SetVID(0, half, c.New) })
	q.At(monotime.At(c.Receiver), func() { n.SetVID(half, 0, c.New) })

	var before ether.Counters
	got := make([]int64, half)
	for at := time.Duration(0); at+c.Sample <= c.Length; at += c.Sample {
		if err := runChecked(q, monotime.At(at+c.Sample), check); err != nil {
			return err
		}
		now := n.Counters()
		s := ChangeSample{
			At: at, Received: make([]int64, half),
			Flooded: now.Flooded - before.Flooded, Dropped: now.Dropped - before.Dropped,
		}
		for i, f := range flows {
			s.Received[i] = f.Received() - got[i]
			got[i] = f.Received()
		}
		before = now
		if err := each(s); err != nil {
			return err
		}
	}
	return nil
}

// runChecked is Queue.Run, and calls check now and then: a sample of many frames takes minutes.
func runChecked(q *sim.Queue, until monotime.Time, check func() error) error {
	end := false
	q.At(until, func() { end = true })
	for events := 1; !end; events++ {
		q.Step()
		if events%checkEvery == 0 && check != nil {
			if err := check(); err != nil {
				return err
			}
		}
	}
	q.Run(until) // what was scheduled for that instant meanwhile
	return nil
}

func (c *Change) start() (*sim.Queue, *ether.Network, error) {
	q := new(sim.Queue)
	n, err := ether.New(q, c.Network)
	if err != nil {
		return nil, nil, err
	}
	t := c.Network.Topology
	switch {
	case len(t.Hosts) == 0 || len(t.Hosts)%2 != 0:
		err = fmt.Errorf("%d hosts (want an even number)", len(t.Hosts))
	case !hasVID(t, c.Old) || !hasVID(t, c.New):
		err = fmt.Errorf("VID %d to %d: the topology lacks one (it has %v)", c.Old, c.New, t.VIDs())
	case c.Sample <= 0 || c.Length < c.Sample || c.Length > ether.MaxTime:
		err = fmt.Errorf("%v in samples of %v (want one at least, and %v at most)", c.Length, c.Sample, ether.MaxTime)
	case c.Length%c.Sample != 0:
		err = fmt.Errorf("%v in samples of %v (want a whole number of them)", c.Length, c.Sample)
	case c.Sender < 0 || c.Receiver < 0:
		err = fmt.Errorf("changes at %v and %v: before the start", c.Sender, c.Receiver)
	}
	return q, n, err
}

func hasVID(t *topology.Topology, vid transport.VID) bool { return slices.Contains(t.VIDs(), vid) }
