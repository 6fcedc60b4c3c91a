package sim

import (
	"time"

	"github.com/rawlane/rawlane/internal/impair"
)

// Faults of the network: probabilities, 0 to 1, for each frame and receiver, drawn on their own.
type Faults struct {
	Loss      float64 // never arrives
	Corrupt   float64 // arrives altered, and the receiver's checksum drops it: a loss with another name
	Duplicate float64 // arrives twice; each copy may be late on its own
	Reorder   float64 // of frames not delayed: arrives late by up to ReorderBy, so that later frames overtake it
	Delay     float64 // arrives late by up to DelayBy: long enough for timers to fire

	// ReorderBy and DelayBy are the most that a frame is late; how much is uniform from 1 ns.
	// Zero means, for ReorderBy, the time in which some frames can pass: L + 4 max(Os, Or, Gap);
	// for DelayBy ten messages, one after the other: 10 (Os + L + Or). Where the costs are zero,
	// 1 us.
	ReorderBy, DelayBy time.Duration
}

func (f Faults) withDefaults(c *Config) Faults {
	if f.ReorderBy <= 0 {
		f.ReorderBy = max(c.L+4*max(c.Os, c.Or, c.Gap), time.Microsecond)
	}
	if f.DelayBy <= 0 {
		f.DelayBy = max(10*(c.Os+c.L+c.Or), time.Microsecond)
	}
	return f
}

// SetFaults sets the faults of frames that leave from now on.
func (n *Network[M]) SetFaults(f Faults) {
	n.config.Faults = f.withDefaults(&n.config)
	n.model = impair.Model{Loss: f.Loss, Duplicate: f.Duplicate, Corrupt: f.Corrupt, Delay: f.Delay, Reorder: f.Reorder}
}

// pair is two nodes, the lower first.
type pair struct{ a, b int32 }

func pairOf(a, b int32) pair { return pair{min(a, b), max(a, b)} }

// Cut drops frames between a and b, both ways, while it is on. What counts is the instant at
// which they leave: frames in flight arrive.
func (n *Network[M]) Cut(a, b int, on bool) {
	if on {
		n.cuts[pairOf(int32(a), int32(b))] = struct{}{}
	} else {
		delete(n.cuts, pairOf(int32(a), int32(b)))
	}
}

func (n *Network[M]) isCut(a, b int32) bool {
	if len(n.cuts) == 0 {
		return false
	}
	_, is := n.cuts[pairOf(a, b)]
	return is
}

// depart hands the frame of a send to the network.
func (n *Network[M]) depart(t *task[M]) {
	n.count.Sent++
	if t.kind == unicast {
		t.kind = flight
		n.cross(t)
		return
	}
	for to := range n.nodes {
		if to != int(t.from) {
			n.cross(n.newTask(flight, int(t.from), to, int(t.nic), t.m))
		}
	}
	n.release(t)
}

// cross decides what happens to a frame on its way to one receiver.
func (n *Network[M]) cross(t *task[M]) {
	if n.isCut(t.from, t.to) {
		n.count.Cut++
		n.release(t)
		return
	}
	i := n.model.Draw(&n.rng)
	if i.Duplicated {
		n.count.Duplicated++
		delayed, reordered := n.model.DrawLateness(&n.rng)
		n.fly(n.newTask(flight, int(t.from), int(t.to), int(t.nic), t.m), delayed, reordered)
	}
	switch {
	case i.Lost:
		n.count.Lost++
		n.release(t)
	case i.Corrupted:
		n.count.Corrupted++
		n.release(t)
	default:
		n.fly(t, i.Delayed, i.Reordered)
	}
}

// fly has a frame arrive, after L or later.
func (n *Network[M]) fly(t *task[M], delayed, reordered bool) {
	d := n.config.L
	if delayed {
		n.count.Delayed++
		d += n.rng.UpTo(n.config.Faults.DelayBy)
	}
	if reordered {
		n.count.Reordered++
		d += n.rng.UpTo(n.config.Faults.ReorderBy)
	}
	n.queue.After(d, t.event)
}
