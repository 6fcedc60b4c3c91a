package mpi

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A process that leaves a collective operation, as its part has failed, or an Op of it panics or
// ends the goroutine, tells all others: they would wait for what it does not send any more. Each
// ends what it has under way of that operation, or begins of it later; whose part fails by that
// tells all in turn, as the first one may have died before it had told all.

// leaver is a process that has left operations: all from one to another, or, of several, some.
type leaver struct {
	rank     int
	from, to int32
	several  bool   // ranks, or operations between which there are others
	down     uint16 // 1 + the rank in the world that is down, if it has left by that; or 0
}

// maxLeavers bounds what a communicator keeps of those: the last one takes in what is heard then.
const maxLeavers = 64

// givenError is of a process that has given the others all that they wait for: they are not told.
type givenError struct{ error }

// Unwrap returns the error.
func (e givenError) Unwrap() error { return e.error }

// leave tells all others that this process has left the operation, by an error.
func (o collective) leave(err error) {
	if _, ok := errors.AsType[givenError](err); ok {
		return
	}
	left := wire.Comm{Left: true, Operation: uint32(o.tag)}
	if down, ok := errors.AsType[*ProcessError](err); ok {
		left.Down = uint16(down.Rank) + 1
	}
	o.w.mu.Lock()
	if !o.w.closed && o.over() == nil {
		o.tellAll(&left)
	}
	o.w.run()
}

// hearLeft ends what is under way of an operation that another process has left. The caller holds
// World.mu, and has what was queued carried out.
func (c *Comm) hearLeft(heard leaver) {
	rank, operation := heard.rank, heard.from
	c.w.stopEach(func(r *Request) bool { return r.isOf(c, operation) }, heard.err())
	for _, d := range c.windows {
		if d.madeBy == operation {
			d.hearLeft(heard.inFirst())
		}
	}
	known := slices.ContainsFunc(c.leavers, func(l leaver) bool { return l.covers(operation) })
	if known || c.isOver(operation) {
		return
	}
	c.anyLeft.Store(true)
	n := len(c.leavers)
	if n > 0 && c.leavers[n-1].rank == rank && (operation-c.leavers[n-1].to)&MaxTag == 1 {
		c.leavers[n-1].to = operation
		c.leavers[n-1].down = cmp.Or(c.leavers[n-1].down, heard.down)
	} else if n == maxLeavers {
		c.leavers[n-1].takeIn(operation)
	} else {
		c.leavers = append(c.leavers, heard)
	}
}

// inFirst is what a process that has left the making of a window's communicator is there, where all
// others begin: it has left the first operation.
func (l leaver) inFirst() leaver {
	l.from, l.to = 1, 1
	return l
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

// begun ends a message of an operation that another process has left, as far as is known, unless it
// is complete.
func (o collective) begun(r *Request) *Request {
	if !o.anyLeft.Load() {
		return r
	}
	w := o.w
	w.mu.Lock()
	k := slices.IndexFunc(o.leavers, func(l leaver) bool { return l.covers(o.tag) })
	if k >= 0 && r.active {
		r.stop(o.leavers[k].err())
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
	near := ""
	if l.several {
		near = ", or one near it"
	}
	err := fmt.Errorf("rank %d has left the operation%s: %w", l.rank, near, ErrWithdrawn)
	if l.down > 0 {
		err = fmt.Errorf("%w: %w", err, &ProcessError{Rank: int(l.down) - 1, Err: errFound})
	}
	return err
}
