package sim

import (
	"time"

	"github.com/rawlane/rawlane/internal/impair"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Faults of the network: probabilities, 0 to 1, for each frame and receiver, drawn on their own.
type Faults struct {
	Loss      float64 // never arrives
	Corrupt   float64 // arrives altered, and the receiver's checksum drops it: a loss with another name
	Duplicate float64 // arrives twice; each copy may be late on its own
	Reorder   float64 // of frames not delayed: arrives late by up to ReorderBy, so that later frames overtake it
	Delay     float64 // arrives late by up to DelayBy: long enough for timers to fire
	Misroute  float64 // arrives at another node, whose NIC drops it: a loss with another name

	// Burst is how many frames in a row a loss takes from one sender to one receiver; 0 means 1.
	// It takes those of the next 4 Burst (Os + L + Or): a path that is seldom used is not cut for
	// long.
	Burst int

	// ReorderBy and DelayBy are the most that a frame is late; how much is uniform from 1 ns.
	// Zero means, for ReorderBy, the time in which some frames can pass: L + 4 max(Os, Or, Gap);
	// for DelayBy ten messages, one after the other: 10 (Os + L + Or). Where the costs are zero,
	// 1 us.
	ReorderBy, DelayBy time.Duration

	// Ring is how many messages and tasks may wait at a processor: those that arrive beyond it are
	// dropped, as a NIC's full receive ring drops them. Zero means any number.
	Ring int
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

// path is the way from one node to another.
type path struct{ from, to int32 }

// Cut drops frames between a and b, both ways, while it is on. What counts is the instant at
// which they leave: frames in flight arrive.
func (n *Network[M]) Cut(a, b int, on bool) {
	n.CutOneWay(a, b, on)
	n.CutOneWay(b, a, on)
}

// CutOneWay is Cut for the frames of one direction.
func (n *Network[M]) CutOneWay(from, to int, on bool) {
	if on {
		n.cuts[path{int32(from), int32(to)}] = struct{}{}
	} else {
		delete(n.cuts, path{int32(from), int32(to)})
	}
}

func (n *Network[M]) isCut(from, to int32) bool {
	if len(n.cuts) == 0 {
		return false
	}
	_, is := n.cuts[path{from, to}]
	return is
}

// inBurst reports whether a burst that has begun takes a frame.
func (n *Network[M]) inBurst(from, to int32) bool {
	p := path{from, to}
	b, begun := n.bursts[p]
	if b.left--; b.left > 0 {
		n.bursts[p] = b
	} else {
		delete(n.bursts, p)
	}
	if !begun || b.until.Before(n.queue.Now()) {
		delete(n.bursts, p)
		return false
	}
	n.count.Burst++
	return true
}

// burst is what a burst still takes.
type burst struct {
	left  int
	until monotime.Time
}

func (n *Network[M]) beginBurst(from, to int32) {
	if c := &n.config; c.Faults.Burst > 1 {
		lasts := time.Duration(4*c.Faults.Burst) * (c.Os + c.L + c.Or)
		n.bursts[path{from, to}] = burst{c.Faults.Burst - 1, n.queue.Now().Add(lasts)}
	}
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
	if len(n.bursts) > 0 && n.inBurst(t.from, t.to) {
		n.count.Lost++
		n.release(t)
		return
	}
	i := n.model.Draw(&n.rng)
	if n.rng.Hits(n.config.Faults.Misroute) {
		n.count.Misrouted++
		n.release(t)
		return
	}
	if i.Duplicated {
		n.count.Duplicated++
		delayed, reordered := n.model.DrawLateness(&n.rng)
		n.fly(n.newTask(flight, int(t.from), int(t.to), int(t.nic), t.m), delayed, reordered)
	}
	switch {
	case i.Lost:
		n.count.Lost++
		n.beginBurst(t.from, t.to)
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
