package mpi

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mpi/internal/consensus"
	"github.com/rawlane/rawlane/mpi/internal/matching"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// agreements is a communicator's part in its agreements. World.mu guards it.
type agreements struct {
	core         *consensus.Member // made with the first one
	waiting      []*outcome        // of those that were begun, in their order
	acknowledged consensus.Set
}

// outcome is what an agreement comes to.
type outcome struct {
	completion mcd.Completion
	value      consensus.Value
}

// Agree returns the bitwise AND of the flags that all processes of the communicator give that live:
// MPI_Comm_agree. All that return, return the same, however many die meanwhile. It works on
// communicators that were revoked.
//
// If a process is down, and not all others have acknowledged that (AckFailed), the error is a
// *ProcessError that names it, on all; the flags are valid then. A process that the others have
// given up is named by its own error, and has no flags. Other errors: ErrClosed; ctx's, and then
// this process takes part all the same, and its next Agree or Shrink is the next one of all.
//
// It is collective, as Shrink is: all call these two in one order.
func (c *Comm) Agree(ctx context.Context, flags uint64) (uint64, error) {
	v, err := c.agree(ctx, consensus.Contribution{Flags: flags})
	if err == nil {
		err = c.failures(v.Unacknowledged)
	}
	if err != nil {
		err = fmt.Errorf("agree: %w", err)
	}
	return v.Flags, err
}

// Shrink makes a communicator of the processes that live, in their order: MPI_Comm_shrink. It is
// the same on all that return, and may have one that dies meanwhile. It works on communicators that
// were revoked. Errors: those of Agree; failures are none. If ctx ends the wait of one process, the
// others' new communicator has it in it all the same: they have to give that one up, too.
func (c *Comm) Shrink(ctx context.Context) (*Comm, error) {
	w := c.w
	w.beginMaking()
	defer w.endMaking()
	v, err := c.agree(ctx, consensus.Contribution{Context: w.newContext()})
	if err != nil {
		return nil, fmt.Errorf("shrink: %w", err)
	}
	if v.Context == 0 {
		return nil, fmt.Errorf("shrink: all processes have made %d communicators, all that they may", w.maxContexts())
	}
	n := &Comm{w: w, context: v.Context}
	for k, rank := range c.members {
		if !v.Failed.Has(k) {
			n.members = append(n.members, rank)
		}
	}
	n.place()
	w.add(n)
	return n, nil
}

// Failed returns the ranks that are known to be down here: MPI_Comm_get_failed. Others may know of
// other ones; those that an Agree has named, or a Shrink left out, all know.
func (c *Comm) Failed() []int {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.ranksIn(c.failed())
}

// AckFailed acknowledges the failures that Failed returns, and returns them: MPI_Comm_ack_failed.
// An Agree does not fail for those that all have acknowledged, and receives and probes from
// AnySource here not for those, as long as another process lives.
func (c *Comm) AckFailed() []int {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.agreements.acknowledged = c.failed()
	return c.ranksIn(c.agreements.acknowledged)
}

// failed returns who is down or was left out. It makes no core: Free keeps one for others that ask.
// The caller holds World.mu.
func (c *Comm) failed() (down consensus.Set) {
	if core := c.agreements.core; core != nil {
		return core.Failed()
	}
	for k, rank := range c.members {
		if c.w.all[rank].err != nil {
			down = down.With(k)
		}
	}
	return down
}

func (c *Comm) ranksIn(s consensus.Set) (ranks []int) {
	for k := range c.members {
		if s.Has(k) {
			ranks = append(ranks, k)
		}
	}
	return ranks
}

// failures returns an error that names processes, or nil.
func (c *Comm) failures(s consensus.Set) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	var errs []error
	for _, k := range c.ranksIn(s) {
		p := c.w.all[c.members[k]]
		err := p.err
		if err == nil {
			err = &ProcessError{Rank: int(p.rank), Err: errFound}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// consensus returns the core of the communicator's agreements. The caller holds World.mu.
func (c *Comm) consensus() *consensus.Member {
	a := &c.agreements
	if a.core == nil {
		a.core = consensus.New(c.rank, len(c.members))
		for k, rank := range c.members {
			if p := c.w.all[rank]; p.err != nil {
				p.failIn(a.core, k) // nothing is begun
			}
		}
	}
	return a.core
}

// agree takes part in the next agreement, and waits for its value.
func (c *Comm) agree(ctx context.Context, given consensus.Contribution) (consensus.Value, error) {
	w, o := c.w, &outcome{}
	w.mu.Lock()
	var err error
	switch {
	case w.closed:
		err = ErrClosed
	case c.freed.Load():
		err = ErrFreed
	}
	if err != nil {
		w.mu.Unlock()
		return consensus.Value{}, err
	}
	var expect []*process
	for _, rank := range c.members {
		expect = append(expect, w.expected(rank)...)
	}
	a := &c.agreements
	given.Acknowledged = a.acknowledged
	a.waiting = append(a.waiting, o)
	c.settle(c.consensus().Begin(given, nil))
	w.runExpecting(expect)
	if !o.completion.Done() {
		if err := w.await(ctx, &o.completion); !o.completion.Done() {
			return consensus.Value{}, err
		}
	}
	if err := o.completion.Err(); err != nil {
		return o.value, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range c.ranksIn(o.value.Failed) { // who is out, is down here
		w.giveUp(w.all[c.members[k]], errFound)
	}
	return o.value, nil
}

// settle carries out what the core has appended. The caller holds World.mu, and has what was queued
// carried out.
func (c *Comm) settle(out []consensus.Output) {
	a := &c.agreements
	for k := range out {
		o := &out[k]
		if o.Do == consensus.Send {
			record := wire.AppendComm(nil, &wire.Comm{Context: c.context, Message: o.Message})
			c.w.queue(c.members[o.To], item{raw: record})
			continue
		}
		first := a.waiting[0]
		a.waiting = a.waiting[1:]
		var err error
		if first.value = o.Value; o.Do == consensus.Excluded {
			err = &ProcessError{Rank: int(c.w.me.rank), Err: errExcluded}
		}
		first.completion.Complete(err)
	}
}

// endAgreements ends the waits of a world that is closed. The caller holds mu.
func (w *World) endAgreements() {
	for _, c := range w.comms {
		for _, o := range c.agreements.waiting {
			o.completion.Complete(ErrClosed)
		}
		c.agreements.waiting = nil
	}
}

// failInAgreements tells the agreements of all communicators that a process is down. The caller
// holds mu, and has what was queued carried out.
func (w *World) failInAgreements(rank matching.Rank) {
	if w.closed { // endAgreements has ended the waits
		return
	}
	for _, c := range w.comms {
		if k := c.rankOf(rank); k >= 0 && c.agreements.core != nil {
			c.settle(w.all[rank].failIn(c.agreements.core, k))
		}
	}
}

// failIn tells a communicator's agreements that the process, rank k of it, is down.
func (p *process) failIn(core *consensus.Member, k int) []consensus.Output {
	if errors.Is(p.err, errGone) {
		return core.GivenUpBy(k, nil)
	}
	return core.Down(k, nil)
}
