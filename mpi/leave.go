package mpi

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A process that leaves a collective operation, as an Op of it panics or ends the goroutine, tells
// all others: they would wait for what it does not send any more. Each ends what it has under way
// of that operation, or begins of it later.

// leaver is a process that has left an operation.
type leaver struct {
	rank      int
	operation int32
}

// maxLeavers bounds what a communicator keeps of those. Of operations that are over here nothing is
// asked any more.
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
	if len(c.leavers) == maxLeavers {
		c.leavers = slices.Delete(c.leavers, 0, 1)
	}
	l := leaver{rank, operation}
	c.leavers = append(c.leavers, l)
	c.anyLeft.Store(true)
	c.w.stopEach(func(r *Request) bool { return r.isOf(c, operation) }, l.err())
}

// begun ends a message of an operation that another process has left, unless it is complete.
func (o collective) begun(r *Request) *Request {
	if !o.anyLeft.Load() {
		return r
	}
	w := o.w
	w.mu.Lock()
	k := slices.IndexFunc(o.leavers, func(l leaver) bool { return l.operation == o.tag })
	if k >= 0 && r.active {
		r.stop(o.leavers[k].err())
	}
	w.run()
	return r
}

// forgetLeavers says that an operation is over.
func (o collective) forgetLeavers() {
	if !o.anyLeft.Load() {
		return
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	o.leavers = slices.DeleteFunc(o.leavers, func(l leaver) bool { return l.operation == o.tag })
	o.anyLeft.Store(len(o.leavers) > 0)
}

func (l *leaver) err() error {
	return fmt.Errorf("rank %d has left the operation: %w", l.rank, ErrWithdrawn)
}
