package sim

import "time"

// Faults of the network: probabilities, 0 to 1, per frame and receiver, each independent of the others.
type Faults struct {
	Loss      float64 // never arrives
	Corrupt   float64 // arrives altered, and the receiver's checksum drops it: a loss with another name
	Duplicate float64 // arrives twice; each copy may be late by itself
	Reorder   float64 // arrives late by up to ReorderBy: frames sent after it overtake it
	Delay     float64 // arrives late by up to DelayBy: long enough for timers to fire

	// ReorderBy and DelayBy are the most that a frame is late; how much is uniform from 1 ns.
	// Zero means, for ReorderBy, the time in which some frames can pass: L + 4 max(Os, Or, Gap);
	// for DelayBy ten messages, one after the other: 10 (Os + L + Or). Where the costs are zero, 1 us.
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
func (n *Network[M]) SetFaults(f Faults) { n.config.Faults = f.withDefaults(&n.config) }

// pair is two nodes, the lower first.
type pair struct{ a, b int32 }

func pairOf(a, b int32) pair { return pair{min(a, b), max(a, b)} }

// Cut has frames between a and b get lost, both ways, while it is on. What counts is the instant at which
// they leave: frames on their way already arrive.
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

// cross decides what becomes of a frame on its way to one receiver.
func (n *Network[M]) cross(t *task[M]) {
	f := &n.config.Faults
	switch {
	case n.isCut(t.from, t.to):
		n.count.Cut++
	case n.chance.Hits(f.Loss):
		n.count.Lost++
	case n.chance.Hits(f.Corrupt):
		n.count.Corrupted++
	default:
		if n.chance.Hits(f.Duplicate) {
			n.count.Duplicated++
			n.fly(n.newTask(flight, int(t.from), int(t.to), int(t.nic), t.m))
		}
		n.fly(t)
		return
	}
	n.release(t)
}

// fly has a frame arrive, after L or later.
func (n *Network[M]) fly(t *task[M]) {
	f, d := &n.config.Faults, n.config.L
	if n.chance.Hits(f.Reorder) {
		n.count.Reordered++
		d += n.chance.UpTo(f.ReorderBy)
	}
	if n.chance.Hits(f.Delay) {
		n.count.Delayed++
		d += n.chance.UpTo(f.DelayBy)
	}
	n.queue.After(d, t.event)
}
