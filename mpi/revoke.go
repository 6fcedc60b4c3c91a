package mpi

import (
	"context"
	"errors"

	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Revoke ends a communicator on all its processes: what is under way in it and what is begun later
// fails with ErrRevoked, but for Agree and Shrink. So those come back, too, that wait for a process
// which has seen a failure, and does not send any more. It is MPI_Comm_revoke.
//
// It is not collective, and does not wait: each process that hears of it passes it on, once. A
// second Revoke does nothing. Other communicators are left as they are. A receive whose message is
// being read just then may end with ErrWithdrawn, if its sender hears of it first.
func (c *Comm) Revoke() {
	w := c.w
	w.mu.Lock()
	if !w.closed && w.comms[c.context] == c {
		c.revoke()
	}
	w.run()
}

// Revoked reports whether this process knows that the communicator was revoked:
// MPI_Comm_is_revoked.
func (c *Comm) Revoked() bool { return c.revoked.Load() }

// revoke passes it on, and then ends what is under way. The caller holds World.mu, and has what was
// queued carried out.
func (c *Comm) revoke() {
	if c.revoked.Swap(true) {
		return
	}
	w := c.w
	c.tellAll(&wire.Comm{Revoke: true})
	for _, context := range []uint32{c.context, c.context + 1} {
		w.out = w.engine.Revoke(context, w.out[:0])
		w.act()
	}
	w.stopEach(func(r *Request) bool { return r.comm == c }, ErrRevoked)
	w.wakeProbes()
	if c.endBarriers != nil {
		c.endBarriers()
	}
	if v := w.windows[c.context]; v != nil {
		v.end(ErrRevoked)
	}
	for _, d := range c.windows {
		d.revoke()
	}
}

// tellAll sends a record about the communicator to all its other processes. The caller holds
// World.mu, and has what was queued carried out.
func (c *Comm) tellAll(r *wire.Comm) {
	r.Context = c.context
	record := wire.AppendComm(nil, r)
	for _, rank := range c.members {
		if rank != c.w.me.rank {
			c.w.queue(rank, item{raw: record})
		}
	}
}

// stopEach stops the active requests that are meant. The caller holds mu, and has what was queued
// carried out.
func (w *World) stopEach(means func(*Request) bool, err error) {
	for r := w.active; r != nil; {
		next := r.next
		if means(r) {
			r.stop(err)
		}
		r = next
	}
}

// stop ends a request, as its communicator was revoked or another process has left its operation. A
// receive that another process may write into ends once that one has answered, or is down; an
// operation of several requests when these do. The caller holds World.mu.
func (r *Request) stop(err error) {
	w := r.comm.w
	switch any(r) {
	case r.receive.Owner:
		r.stopped = err
		w.out = w.engine.Cancel(&r.receive, w.out[:0])
		w.act()
	case r.send.Owner:
		if w.engine.CancelSend(&r.send) {
			w.complete(r, err)
		} else {
			w.disown(r, err)
		}
	default:
		if r.multicast != (multicastWait{}) {
			w.complete(r, err)
		}
	}
}

// failure returns what a request ends with: ErrRevoked in place of what a revoked communicator's
// requests are ended by.
func (c *Comm) failure(err error) error {
	if err != nil && c.revoked.Load() && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrTruncate) {
		return ErrRevoked
	}
	return err
}

// revocable is a context that a Revoke ends, too. One goroutine waits with it. The two are joined
// once it sleeps: a wait that spins asks for Err alone, and is over sooner than they would be.
type revocable struct {
	context.Context
	unrevoked context.Context
	both      context.Context
	end       context.CancelFunc
	apart     func() bool
}

// Err implements context.Context.
func (r *revocable) Err() error {
	if err := r.Context.Err(); err != nil {
		return err
	}
	return r.unrevoked.Err()
}

// Done implements context.Context.
func (r *revocable) Done() <-chan struct{} {
	if r.both == nil {
		r.both, r.end = context.WithCancel(r.Context)
		r.apart = context.AfterFunc(r.unrevoked, r.end)
	}
	return r.both.Done()
}

// release ends what Done has begun.
func (r *revocable) release() {
	if r.both != nil {
		r.apart()
		r.end()
	}
}
