package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/wire"
)

// Barrier waits until all processes have called it: MPI_Barrier. It is package barrier's, and says
// nothing of messages. One whose context has ended is resumed by the next one: so several calls may
// be one of another process's, and a Barrier is not counted among the collective operations.
func (c *Comm) Barrier(ctx context.Context) error {
	err := c.refusal()
	if err == nil {
		err = collective{Comm: c, ctx: ctx}.barrier(0, nil)
	}
	if err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}

// Ibarrier begins a barrier: MPI_Ibarrier. Any number of them may be under way.
func (c *Comm) Ibarrier() *Request {
	number, before, over := c.turn()
	return c.beginDo("barrier", func(o collective) error {
		defer close(over)
		return o.barrier(number, before)
	})
}

// numberOfFree is package barrier's number of the barrier of a Free: that of Barrier may be entered
// still, by one whose context has ended.
const numberOfFree = barrier.Numbers - 1

// turns are the barriers that were begun last, one of each number of package barrier's but 0 and
// numberOfFree: a number is for one at a time.
type turns struct {
	next int
	over [numberOfFree - 1]chan struct{} // closed at its end
}

// turn gives a barrier that is begun a number, says when the one before it with that number is
// over, and how it tells its own end.
func (c *Comm) turn() (number uint8, before <-chan struct{}, over chan struct{}) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.turns == nil {
		c.turns = new(turns)
	}
	t := c.turns
	k := t.next
	before, over = t.over[k], make(chan struct{})
	t.next, t.over[k] = (k+1)%len(t.over), over
	return uint8(1 + k), before, over
}

// barrier does one once the one before is over, if there is one.
func (o collective) barrier(number uint8, before <-chan struct{}) error {
	g, err := o.barrierGroup()
	if err != nil {
		return o.named(err)
	}
	ctx := &revocable{Context: o.ctx, unrevoked: o.unrevoked}
	defer ctx.release()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		err = g.BarrierWith(ctx, barrier.Options{Number: number})
		o.askLeft(ctx, err)
	}
	if err != nil && o.revoked.Load() {
		return ErrRevoked
	}
	return o.named(err)
}

// askLeft asks the processes that have left the communicator's group whether they are there: one
// that has left the world said goodbye to those alone that it had messages with.
func (c *Comm) askLeft(ctx context.Context, err error) {
	down, ok := errors.AsType[*barrier.NodeDownError](err)
	if !ok || c == c.w.comm {
		return
	}
	w := c.w
	for k, node := range down.Nodes {
		rank, known := w.ranks[node]
		if !known || down.Reasons[k] != barrier.Left {
			continue
		}
		err := w.all[rank].To.Push(ctx, wire.Append(nil, &nothing))
		if err == nil {
			err = w.layer.Domain.Flush(ctx, node)
		}
		if down, ok := errors.AsType[*memfifo.PeerDownError](err); ok {
			w.down(down)
		}
	}
}

// named says what a barrier's error means here. It names the processes that are down for a barrier,
// or have freed its communicator alone.
func (c *Comm) named(err error) error {
	down, ok := errors.AsType[*barrier.NodeDownError](err)
	switch {
	case !ok && errors.Is(err, mcd.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case !ok:
		return err
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if down.Excluded {
		return c.givenUp(down)
	}
	var errs []error
	for k, node := range down.Nodes {
		if rank, known := c.w.ranks[node]; known {
			if down.Reasons[k] == barrier.Left && c != c.w.comm && c.w.all[rank].err == nil {
				errs = append(errs, fmt.Errorf("rank %d: %w: %w", c.rankOf(rank), ErrFreed, err))
				continue
			}
			c.w.giveUp(c.w.all[rank], err)
			errs = append(errs, &ProcessError{Rank: int(rank), Err: err})
		}
	}
	if errs == nil { // it stays a failure
		return err
	}
	return errors.Join(errs...)
}

// givenUp takes those for down that go on without this process, as they have said in a barrier; its
// agreements with them are over. What they say of others counts for less: those hear each other, or
// find out that they do not. The caller holds World.mu.
func (c *Comm) givenUp(by *barrier.NodeDownError) error {
	for _, rank := range c.members {
		if p := c.w.all[rank]; !slices.Contains(by.Nodes, p.ID) {
			c.w.fail(p.ID, errGone)
		}
	}
	c.settle(c.consensus().LeftOut(nil))
	return &ProcessError{Rank: int(c.w.me.rank), Err: by}
}

// barrierGroup makes the communicator's group at its first barrier.
func (c *Comm) barrierGroup() (*barrier.Group, error) {
	c.once.Do(func() {
		group, err := c.w.barriers.Group(barrier.GroupConfig{
			ID: c.context, Members: barrier.MaskOf(c.w.nodes(c.members)...), PeerTimeout: c.w.cfg.PeerTimeout,
		})
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if c.left && err == nil { // the communicator was freed meanwhile
			err = errors.Join(ErrFreed, group.Close())
		}
		c.group, c.groupErr = group, err
		if c.unrevoked, c.endBarriers = context.WithCancel(context.Background()); c.revoked.Load() {
			c.endBarriers()
		}
	})
	return c.group, c.groupErr
}
