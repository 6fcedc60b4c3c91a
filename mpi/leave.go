package mpi

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A process that leaves a collective operation, as an Op of it panics or ends the goroutine, tells
// all others: they would wait for what it does not send any more. Each ends what it has under way
// of that operation, or begins of it later.

// leaver is a process that has left operations: all from one to another, or, of several, some.
type leaver struct {
	rank     int
	from, to int32
	several  bool // ranks, or operations between which there are others
}

// maxLeavers bounds what a communicator keeps of those: the last one takes in what is heard then.
const maxLeavers = 64

// leave tells all others that this process has left the operation.
func (o collective) leave() {
	o.w.mu.Lock()
	if !o.w.closed && o.over() == nil {
		o.tellAll(&wire.Comm{Left: true, Operation: uint32(o.tag)})
	}
	o.w.run()
}

// hearLeft ends what is under way of an operation that another process has left. The caller holds
// World.mu, and has what was queued carried out.
func (c *Comm) hearLeft(rank int, operation int32) {
	heard := leaver{rank: rank, from: operation, to: operation}
	c.w.stopEach(func(r *Request) bool { return r.isOf(c, operation) }, heard.err())
	known := slices.ContainsFunc(c.leavers, func(l leaver) bool { return l.covers(operation) })
	if known || c.isOver(operation) {
		return
	}
	c.anyLeft.Store(true)
	n := len(c.leavers)
	if n > 0 && c.leavers[n-1].rank == rank && (operation-c.leavers[n-1].to)&MaxTag == 1 {
		c.leavers[n-1].to = operation
	} else if n == maxLeavers {
		c.leavers[n-1].takeIn(operation)
	} else {
		c.leavers = append(c.leavers, heard)
	}
}

// covers reports whether a process has left an operation, as far as is known.
func (l *leaver) covers(operation int32) bool {
	return (operation-l.from)&MaxTag <= (l.to-l.from)&MaxTag
}

// takeIn has what is known cover an operation, and all between.
func (l *leaver) takeIn(operation int32) {
	l.several = true
	if (operation-l.from)&MaxTag <= MaxTag/2 {
		l.to = operation
	} else {
		l.from = operation
	}
}

// begun ends a message of an operation that another process has left, unless it is complete. Where
// this one does not know that for sure it leaves the operation, too, as others may wait for it.
func (o collective) begun(r *Request) *Request {
	if !o.anyLeft.Load() {
		return r
	}
	w := o.w
	w.mu.Lock()
	k := slices.IndexFunc(o.leavers, func(l leaver) bool { return l.covers(o.tag) })
	if k >= 0 && r.active {
		r.stop(o.leavers[k].err())
		if o.leavers[k].several {
			o.tellAll(&wire.Comm{Left: true, Operation: uint32(o.tag)})
		}
	}
	w.run()
	return r
}

// forgetLeavers forgets those who have left operations that are over here. The caller holds
// World.mu.
func (c *Comm) forgetLeavers() {
	if len(c.leavers) == 0 {
		return
	}
	c.leavers = slices.DeleteFunc(c.leavers, func(l leaver) bool {
		return c.isOver(l.to) && !slices.ContainsFunc(c.underWay, l.covers)
	})
	c.anyLeft.Store(len(c.leavers) > 0)
}

func (l *leaver) err() error {
	if l.several {
		return fmt.Errorf("rank %d has left the operation, or one near it: %w", l.rank, ErrWithdrawn)
	}
	return fmt.Errorf("rank %d has left the operation: %w", l.rank, ErrWithdrawn)
}
