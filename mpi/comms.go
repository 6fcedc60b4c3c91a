package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// A record about a communicator may come before this process has made it: another one has, and this
// one is about to. Such records are kept while a communicator is being made here.

// earlyRecord is one about a communicator that is not known, or about multicasts in it.
type earlyRecord struct {
	from      matching.Rank
	record    wire.Comm
	multicast wire.Multicast // if it has a kind
}

func (e *earlyRecord) context() uint32 {
	if e.multicast.Kind != 0 {
		return e.multicast.Context
	}
	return e.record.Context
}

// take takes the record in. The caller holds World.mu.
func (e *earlyRecord) take(c *Comm) error {
	if e.multicast.Kind != 0 {
		return c.takeMulticast(e.from, &e.multicast, true)
	}
	return c.handle(e.from, &e.record)
}

// beginMaking says that a communicator is being made.
func (w *World) beginMaking() {
	w.mu.Lock()
	w.making++
	w.mu.Unlock()
}

// endMaking ends what beginMaking began. What was kept for no communicator that was made is
// dropped.
func (w *World) endMaking() {
	w.mu.Lock()
	if w.making--; w.making == 0 {
		for k := range w.early {
			if e := &w.early[k]; e.multicast.Kind == wire.Data && !w.closed {
				w.sayLeft(e.from, e.multicast.Context)
			}
		}
		w.early = nil
	}
	w.run()
}

// add makes a communicator known, and takes in what has come for it.
func (w *World) add(c *Comm) {
	w.mu.Lock()
	w.comms[c.context] = c
	w.early = slices.DeleteFunc(w.early, func(e earlyRecord) bool {
		if e.context() != c.context {
			return false
		}
		lives := w.all[e.from].err == nil || e.multicast.Kind == wire.Data // it has sent that before
		if !w.closed && lives && e.take(c) != nil {
			w.stats.Malformed++
		}
		return true
	})
	w.run()
}

// Free ends the communicator, and gives back what it has taken: MPI_Comm_free. All its processes
// call it, each once its requests are complete, and it returns when all have. Messages that nobody
// has received, or receives any more, are dropped; windows that were made of it stay. Errors:
// ErrActive and ErrFreed, and then nothing was done; those of Barrier, and then it is freed here
// alone. One that was revoked is freed without a wait, and if something was agreed in it, what
// answers others that ask, some 2 KB, stays until World.Close; which ends that of the world, too.
// Of the nil communicator that Split returns for NoColor there is nothing to free.
func (c *Comm) Free(ctx context.Context) error {
	if c == nil {
		return nil
	}
	err := c.beginFree()
	if err == nil {
		err = c.free(ctx)
	}
	if err != nil {
		return fmt.Errorf("free: %w", err)
	}
	return nil
}

// free frees the communicator with all others, or here alone if that fails, or does not return.
func (c *Comm) free(ctx context.Context) (err error) {
	err = errUnreturned
	defer func() { c.endFree(err == nil && !c.revoked.Load()) }()
	if c.revoked.Load() {
		return nil
	}
	return collective{Comm: c, ctx: ctx}.barrier(numberOfFree, nil)
}

// beginFree has nothing begun in the communicator any more, but for the barrier of Free.
func (c *Comm) beginFree() error {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c == w.comm {
		return errors.New("the world's communicator ends with it")
	}
	for r := w.active; r != nil; r = r.next {
		if r.comm == c && !r.detached && !r.withdrawn {
			return ErrActive
		}
	}
	if c.freed.Swap(true) {
		return ErrFreed
	}
	return nil
}

// endFree forgets the communicator. If not all have freed it others may still ask what was agreed:
// then what answers them is kept.
func (c *Comm) endFree(all bool) {
	w := c.w
	w.mu.Lock()
	if all || c.agreements.core == nil {
		delete(w.comms, c.context)
		for _, o := range c.agreements.waiting {
			o.completion.Complete(ErrFreed)
		}
		c.agreements.waiting = nil
	}
	for _, context := range []uint32{c.context, c.context + 1} {
		w.out = w.engine.Revoke(context, w.out[:0]) // what others have sent may still come
		if !w.closed {
			w.act()
		}
	}
	if !all && !c.revoked.Load() && !w.closed {
		c.leaveMulticasts()
	}
	w.wakeProbes()
	c.left = true
	group := c.group
	w.run()
	c.leaveGroup()
	if group != nil {
		_ = group.Close() // it has no error
	}
}

// receiveComm takes a record about a communicator. The caller holds mu, and has what was queued
// carried out.
func (w *World) receiveComm(from matching.Rank, rec []byte) error {
	defer func() { w.out = w.out[:0] }() // was carried out
	e := earlyRecord{from: from}
	if err := wire.ParseComm(&e.record, rec); err != nil {
		return err
	}
	if c := w.comms[e.record.Context]; c != nil {
		return c.handle(from, &e.record)
	}
	if w.engine.Revoked(e.record.Context) {
		return nil // it was freed here
	}
	if w.making == 0 && e.record.Left {
		return nil // this process has failed to make it
	}
	return w.keepEarly(e)
}

// keepEarly keeps a record for a communicator that this process is about to make.
func (w *World) keepEarly(e earlyRecord) error {
	if len(w.early) >= w.making*maxEarly*len(w.all) {
		return wire.ErrMalformed
	}
	w.early = append(w.early, e)
	return nil
}

// handle takes in a record about the communicator. The caller holds World.mu.
func (c *Comm) handle(from matching.Rank, r *wire.Comm) error {
	k := c.rankOf(from)
	switch {
	case k < 0:
		return wire.ErrMalformed
	case r.Revoke:
		c.revoke()
		return nil
	case r.Left:
		if int(r.Down) > len(c.w.all) {
			return wire.ErrMalformed
		}
		c.hearLeft(leaver{rank: k, from: int32(r.Operation), to: int32(r.Operation), down: r.Down})
		return nil
	}
	out, err := c.consensus().Handle(k, &r.Message, nil)
	c.settle(out)
	return err
}
