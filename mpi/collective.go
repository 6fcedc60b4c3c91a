package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Collective operations are called by all processes of a communicator, in one order, with arguments
// of one size and one root. Their messages are in a context of their own, and each receive is
// posted before what it waits for is sent, so that long messages are written into place.

// collective is one operation. Its tag is its number: all processes call operations in one order,
// and several may be under way.
type collective struct {
	*Comm
	ctx  context.Context
	name string
	tag  int32
}

// do does an operation.
func (c *Comm) do(ctx context.Context, name string, f func(o collective) error) error {
	return c.number(ctx, name).run(f)
}

// errEnded: an Op has ended the goroutine that it was called in.
var errEnded = errors.New("a function of the program's has ended the operation's goroutine")

// begin has a goroutine do an operation. It ends with the world at the latest.
func (c *Comm) beginDo(name string, f func(o collective) error) *Request {
	w, r := c.w, new(Request)
	c.begin(r, nil)
	o := c.number(w.ended, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		r.completion.Complete(ErrClosed)
		return r
	}
	w.activate(r)
	r.queued.Add(1) // Close completes the request before the operation ends
	w.running.Go(func() {
		err := errEnded
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			r.queued.Add(-1)
			w.idle.Broadcast()
			w.complete(r, err)
		}()
		err = o.run(f)
	})
	return r
}

// number gives the next operation its number, under which it is under way until run has returned.
func (c *Comm) number(ctx context.Context, name string) collective {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	o := collective{c, ctx, name, int32(c.operations.Add(1) & MaxTag)}
	c.underWay = append(c.underWay, o.tag)
	return o
}

// isOver reports whether an operation is over here: nobody receives messages of it any more. The
// caller holds World.mu.
func (c *Comm) isOver(operation int32) bool {
	age := (c.operations.Load() - uint32(operation)) & MaxTag
	return age <= MaxTag/2 && !slices.Contains(c.underWay, operation)
}

// dropOver drops the messages that have come for an operation that is over. The caller holds
// World.mu, and has what was queued carried out.
func (c *Comm) dropOver(operation int32) {
	w := c.w
	q := matching.Pattern{Source: matching.AnySource, Context: c.context + 1, Tag: operation}
	for m := w.engine.Take(&q); m != nil; m = w.engine.Take(&q) {
		w.out = w.engine.Drop(m, w.out[:0])
		w.act()
	}
}

// end says that an operation is over. One that has failed may have left messages that it did not
// wait for, and so may one that others have called with another root.
func (o collective) end() {
	w := o.w
	w.mu.Lock()
	o.underWay = slices.DeleteFunc(o.underWay, func(tag int32) bool { return tag == o.tag })
	o.forgetLeavers()
	if !w.closed {
		o.dropOver(o.tag)
	}
	w.run()
}

func (o collective) run(f func(o collective) error) error {
	returned := false
	err := o.refusal()
	defer func() {
		defer o.end()
		if !returned {
			defer o.endRequests() // also if what tells the others does not return
			err = errUnreturned
		}
		if err != nil {
			o.leave(err)
		}
	}()
	if err == nil {
		err = f(o)
	}
	returned = true
	if err != nil {
		return fmt.Errorf("%s: %w", o.name, err)
	}
	return nil
}

// endRequests ends what is under way of an operation that does not return: its memory is the
// caller's.
func (o collective) endRequests() {
	w := o.w
	var mine []*Request
	w.mu.Lock()
	for r := w.active; r != nil; r = r.next {
		if r.isOf(o.Comm, o.tag) {
			mine = append(mine, r)
		}
	}
	w.mu.Unlock()
	for _, r := range mine {
		_, _ = r.end(errUnreturned)
	}
}

// isOf reports whether a request that is active is a message of a collective operation.
func (r *Request) isOf(c *Comm, operation int32) bool {
	context, tag := r.send.Context, r.send.Tag
	if r.receive.Owner == r {
		context, tag = r.receive.Context, r.receive.Tag
	}
	return r.comm == c && context == c.context+1 && tag == operation && !r.withdrawn
}

// checkRoot checks the root of an operation.
func (o collective) checkRoot(root int) error {
	if err := o.checkRank(root); err != nil {
		return fmt.Errorf("root: %w", err)
	}
	return nil
}

// checkCount checks the length of a slice.
func checkCount(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s has %d elements, want %d", what, got, want)
	}
	return nil
}

// request returns a pooled one.
func (o collective) request(memory []byte) *Request {
	r := o.w.request()
	o.begin(r, memory)
	r.blocking = true
	return r
}

// isend begins a send to a process that has begun to receive it, or will. Where all receives are
// offered it waits for the offer.
func (o collective) isend(to int, data []byte) *Request {
	return o.begun(o.Comm.send(o.request(data), &matching.Send{
		To: o.members[to], Envelope: matching.Envelope{Context: o.context + 1, Tag: o.tag},
		Direct: o.w.cfg.OfferFrom == offersAll && len(data) > 0,
	}))
}

func (o collective) irecv(from int, buf []byte) *Request {
	return o.begun(o.Comm.receive(o.request(buf), o.context+1, o.members[from], o.tag))
}

// wait waits for all of the requests, and returns the errors. What was received fills its memory.
func (o collective) wait(requests ...*Request) error {
	var errs []error
	for _, r := range requests {
		s, err := r.finish(o.ctx)
		if err == nil && r.receive.Owner == r {
			err = r.misfit(s.Source)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if r.completion.Done() {
			o.w.putRequest(r)
		}
	}
	return errors.Join(errs...)
}

// misfit is the error of a message of an operation that is not as long as its memory, from a rank.
func (r *Request) misfit(from int) error {
	switch size := r.status.size; {
	case size > len(r.memory):
		return truncated(size, len(r.memory))
	case size < len(r.memory):
		return fmt.Errorf("rank %d has given %d bytes, want %d", from, size, len(r.memory))
	}
	return nil
}

func (o collective) send(to int, data []byte) error { return o.wait(o.isend(to, data)) }

func (o collective) recv(from int, buf []byte) error { return o.wait(o.irecv(from, buf)) }

// exchange sends and receives at once.
func (o collective) exchange(to int, data []byte, from int, buf []byte) error {
	r := o.irecv(from, buf)
	return o.wait(o.isend(to, data), r)
}
