package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// LockMode is how a lock of a window is held.
type LockMode uint8

// The modes: any number of processes hold a shared lock of one rank, or one an exclusive lock.
const (
	Shared    LockMode = iota + 1 // MPI_LOCK_SHARED
	Exclusive                     // MPI_LOCK_EXCLUSIVE
)

// Fence ends an epoch of all processes, and begins the next one: MPI_Win_fence. When it returns
// what all had done before is in place. After an error the window is good for Free alone. Errors:
// ErrEpoch in an epoch of another kind; ErrFreed, ErrClosed; a *ProcessError; ctx's.
func (v *window) Fence(ctx context.Context) error {
	w := v.w
	w.mu.Lock()
	defer w.mu.Unlock()
	err := v.usable(nil)
	if err == nil {
		err = v.outside()
	}
	if err == nil {
		err = v.broken
	}
	if err == nil {
		v.fenced, v.broken = false, errUnreturned
		err = v.meet(ctx)
		v.broken = err
	}
	if v.fenced = err == nil; !v.fenced {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

// unfenced returns the error of a fence that has failed: behind it there are no epochs any more.
// The caller holds World.mu.
func (v *window) unfenced() error {
	if v.broken == nil {
		return nil
	}
	return fmt.Errorf("behind a fence that has failed, or is under way: %w", v.broken)
}

// meet is what all do at a fence. The caller holds World.mu, which meet gives back meanwhile.
func (v *window) meet(ctx context.Context) error {
	v.w.mu.Unlock()
	defer v.w.mu.Lock()
	if err := v.flush(ctx, v.members...); err != nil {
		return err
	}
	return v.comm.Barrier(ctx)
}

// outside says whether the process is in an epoch other than a fence's. The caller holds World.mu.
func (v *window) outside() error {
	if v.started != nil || v.exposed != nil || v.holdsLock() {
		return ErrEpoch
	}
	return nil
}

// holdsLock says whether this process holds a lock, or waits for one. The caller holds World.mu.
func (v *window) holdsLock() bool {
	return slices.ContainsFunc(v.members, func(m *member) bool { return m.lock != 0 })
}

// Lock begins an epoch at one rank: MPI_Win_lock. Locks are given in the order in which they were
// asked for. One of a process that dies is given to the next one, and the memory is as the dead one
// has left it. Errors: ErrEpoch if this process has a lock there, or is between Start and Complete;
// ErrRank, ErrFreed, ErrClosed; a *ProcessError of that rank; ctx's.
func (v *window) Lock(ctx context.Context, rank int, mode LockMode) error {
	err := v.checkRank(rank)
	if err == nil && mode != Shared && mode != Exclusive {
		err = fmt.Errorf("mode %d: out of range", mode)
	}
	if err == nil && rank != ProcNull {
		var c *call
		if c, err = v.beginLock(v.members[rank], mode == Exclusive); err == nil {
			err = v.endLock(ctx, c)
		}
	}
	return failure("lock of", rank, err)
}

// checkRank checks a rank, which may be ProcNull.
func (v *window) checkRank(rank int) error {
	if rank == ProcNull {
		v.w.mu.Lock()
		defer v.w.mu.Unlock()
		return v.usable(nil)
	}
	return v.comm.checkRank(rank)
}

// beginLock asks for a lock.
func (v *window) beginLock(m *member, exclusive bool) (*call, error) {
	w := v.w
	w.mu.Lock()
	err := v.usable(m)
	if err == nil {
		err = v.unfenced()
	}
	if err == nil && (m.lock != 0 || v.started != nil) {
		err = ErrEpoch
	}
	if err != nil {
		w.mu.Unlock()
		return nil, err
	}
	v.fenced = false
	c := v.newCall(m, 0)
	m.lock = c.id
	w.mu.Unlock()
	v.expect(m)
	w.mu.Lock()
	v.tell(m, &wire.WindowRecord{Kind: wire.Lock, ID: c.id, Exclusive: exclusive})
	return c, nil
}

// endLock waits for a lock.
func (v *window) endLock(ctx context.Context, c *call) error {
	m, id := c.m, c.id
	err := errUnreturned
	defer func() {
		v.w.mu.Lock()
		if err != nil {
			v.unlock(m, id)
			return
		}
		m.held = true
		v.w.mu.Unlock()
	}()
	err = v.endCall(ctx, c, nil)
	return err
}

// unlock gives a lock back, also one that is waited for. The caller holds World.mu, which unlock
// gives back.
func (v *window) unlock(m *member, id uint32) {
	m.held, m.lock = false, 0
	v.tell(m, &wire.WindowRecord{Kind: wire.Release, ID: id})
}

// Unlock ends the epoch that Lock has begun: MPI_Win_unlock. What was done in it is in place when
// it returns, and the lock is given back, whatever it returns. Errors: ErrEpoch without such a
// lock; those of Flush.
func (v *window) Unlock(ctx context.Context, rank int) error {
	err := v.checkRank(rank)
	if err == nil && rank != ProcNull {
		m := v.members[rank]
		v.w.mu.Lock()
		if err = v.usable(nil); err == nil && (v.allLocked || !m.held) {
			err = ErrEpoch
		}
		if err == nil {
			v.unlock(m, m.lock) // in order behind what was done
			err = v.flush(ctx, m)
		} else {
			v.w.mu.Unlock()
		}
	}
	return failure("unlock of", rank, err)
}

// LockAll begins an epoch at all ranks, with a shared lock of each: MPI_Win_lock_all. It asks for
// them in the order of ranks, each once the one before is held: asked for at once, those of two
// LockAlls may stand in opposite orders behind exclusive ones, and all wait in a circle. Beside a
// process that holds exclusive locks of several ranks, and asked for them in another order, they
// still may, until their contexts end. Errors: those of Lock, and then no lock is held.
func (v *window) LockAll(ctx context.Context) (err error) {
	w := v.w
	w.mu.Lock()
	if err = v.anyUnusable(v.members); err == nil {
		err = v.outside()
	}
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("lock of all: %w", err)
	}
	calls := make([]*call, len(v.members))
	ids := make([]uint32, len(calls)) // of this one
	locked := false
	defer func() {
		if !locked {
			v.unlockThose(calls, ids)
		}
	}()
	for k, m := range v.members {
		if calls[k], err = v.beginLock(m, false); err == nil {
			ids[k] = calls[k].id
			err = v.endLock(ctx, calls[k])
		}
		if err != nil {
			return failure("lock of", k, err)
		}
	}
	locked = true
	w.mu.Lock()
	v.allLocked = true
	w.mu.Unlock()
	return nil
}

// unlockThose gives back the locks of a LockAll that has failed, by their numbers, also those that
// it does not wait for any more.
func (v *window) unlockThose(calls []*call, ids []uint32) {
	for k, m := range v.members {
		v.w.mu.Lock()
		if ids[k] == 0 || m.lock != ids[k] {
			v.w.mu.Unlock()
			continue
		}
		if v.calls[ids[k]] != nil {
			v.forget(calls[k])
		}
		v.unlock(m, ids[k])
	}
}

// UnlockAll ends the epoch that LockAll has begun: MPI_Win_unlock_all. It is as Unlock of all.
func (v *window) UnlockAll(ctx context.Context) error {
	w := v.w
	w.mu.Lock()
	err := v.usable(nil)
	if err == nil && !v.allLocked {
		err = ErrEpoch
	}
	if err != nil {
		w.mu.Unlock()
		return fmt.Errorf("unlock of all: %w", err)
	}
	v.allLocked = false
	for _, m := range v.members {
		v.unlock(m, m.lock)
		w.mu.Lock()
	}
	w.mu.Unlock()
	return v.flush(ctx, v.members...)
}

// Flush returns when what this process has done at a rank is in place there: MPI_Win_flush. There
// is no MPI_Win_flush_local: all operations are complete here when they return. Errors: ErrEpoch
// outside of an epoch there; ErrRank, ErrFreed, ErrClosed; a *ProcessError; ctx's.
func (v *window) Flush(ctx context.Context, rank int) error {
	err := v.checkRank(rank)
	if err == nil && rank != ProcNull {
		err = v.flushUsable(ctx, v.members[rank])
	}
	return failure("flush of", rank, err)
}

// FlushAll is Flush of all ranks, in an epoch at any of them: MPI_Win_flush_all.
func (v *window) FlushAll(ctx context.Context) error {
	if err := v.flushUsable(ctx, v.members...); err != nil {
		return fmt.Errorf("flush of all: %w", err)
	}
	return nil
}

func (v *window) flushUsable(ctx context.Context, members ...*member) error {
	v.w.mu.Lock()
	err := v.usable(nil)
	if err == nil && v.anyUnusable(members) == nil && !slices.ContainsFunc(members, v.reaches) {
		err = ErrEpoch
	}
	v.w.mu.Unlock()
	if err == nil {
		err = v.flush(ctx, members...)
	}
	return err
}

func (v *window) flush(ctx context.Context, members ...*member) error {
	nodes := make([]mcd.NodeID, len(members))
	for k, m := range members {
		nodes[k] = m.p.ID
	}
	w := v.w
	errs := v.confirm(ctx, members)
	errs = v.flushed(errs, w.layer.Domain.Flush(ctx, nodes...))
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(append(errs, v.gone(members))...)
}

// confirm has the members that were sent updates answer behind them: one that has freed the window
// alone drops updates, and says so in the same order. (A put it refuses, which memfifo tells.) What
// gone names is no error here.
func (v *window) confirm(ctx context.Context, members []*member) (errs []error) {
	w := v.w
	var asked []*call
	w.mu.Lock()
	if err := v.ended(); err != nil { // meanwhile: nobody takes an answer
		w.mu.Unlock()
		return []error{err}
	}
	for _, m := range members {
		if m.updates != m.confirmed && m.p.err == nil && !m.freed {
			c := v.newCall(m, v.element)
			c.updates = m.updates
			asked = append(asked, c)
		}
	}
	w.mu.Unlock()
	left := asked // that have not ended: none, if all waits return
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range left {
			v.forget(c)
		}
	}()
	var nothing [maxElement]byte
	for _, c := range asked {
		v.expect(c.m)
		c.record = wire.AppendWindow(c.record[:0], &wire.WindowRecord{
			Kind: wire.Fetch, Context: v.comm.context, ID: c.id, Update: uint8(Keep), Data: nothing[:v.element],
		})
		if err := v.outcome(c.m, c.m.to.Push(ctx, c.record)); err != nil {
			w.mu.Lock()
			c.complete(err)
			w.mu.Unlock()
		}
	}
	for _, c := range asked {
		m, updates := c.m, c.updates
		left = left[1:]
		err := v.endCall(ctx, c, nil)
		w.mu.Lock()
		switch {
		case err == nil:
			m.confirmed = max(m.confirmed, updates)
		case m.p.err == nil && !m.freed:
			errs = append(errs, fmt.Errorf("rank %d: %w", m.rank, err))
		}
		w.mu.Unlock()
	}
	return errs
}

// ended says why the window takes no answers any more, if that is so: one that is being freed does.
// The caller holds World.mu.
func (v *window) ended() error {
	switch {
	case v.w.closed:
		return ErrClosed
	case v.w.windows[v.comm.context] != v:
		return ErrFreed
	}
	return nil
}

// gone names the members that are down, or have freed the window alone and drop or refuse what
// comes. The caller holds World.mu.
func (v *window) gone(members []*member) error {
	var errs []error
	for _, m := range members {
		if m.p.err != nil {
			errs = append(errs, m.p.err)
		} else if m.freed || m.refused {
			errs = append(errs, fmt.Errorf("rank %d: %w", m.rank, ErrFreed))
		}
	}
	return errors.Join(errs...)
}

// flushed appends what an error of memfifo's Flush means here. It leaves processes that are down to
// flush, and refusals, which may be of any window, to noteRefused.
func (v *window) flushed(errs []error, err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			errs = v.flushed(errs, e)
		}
		return errs
	}
	switch {
	case err == nil, errors.Is(err, memfifo.ErrAccess):
	case errors.Is(err, memfifo.ErrPeerDown):
		w := v.w
		w.mu.Lock()
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); ok && !w.closed {
			w.fail(down.Node, down)
		}
		w.mu.Unlock()
	case errors.Is(err, memfifo.ErrClosed):
		errs = append(errs, ErrClosed)
	default:
		errs = append(errs, err)
	}
	return errs
}

// noteRefused notes which window's operations were refused; they may be of messages, too. A flush
// that has waited for them finds it noted, whichever flush memfifo tells. Of many refusals between
// two flushes the first one says it.
func (w *World) noteRefused(refused *memfifo.AccessError) {
	if refused.Count > 1 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.windows {
		for _, m := range v.members {
			if v.settled && m.p.ID == refused.Node && m.memory.Key().ID == refused.ID {
				m.refused = true
			}
		}
	}
}
