package mpi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Send sends data to a rank. It returns when data may be changed: the message is on its way or, if
// it is long, was received. It is MPI_Send. Errors: ErrRank, ErrTag, ErrFreed, ErrClosed; a
// *ProcessError; ctx's, and then nobody knows whether the message is received. A message whose
// bytes are just going, or that others wait before, uses data until the receiver has answered or is
// down: ctx then ends Send by up to Config.PeerTimeout later, if the receiver is silent.
func Send[T Element](ctx context.Context, c *Comm, data []T, to, tag int) error {
	return c.sendAndWait(ctx, bytesOf(data), to, tag, false)
}

// Ssend is Send that returns when a receive has the message: MPI_Ssend. It is ErrFreed where the
// receiver has freed the communicator without one, as is a Send of a long message.
func Ssend[T Element](ctx context.Context, c *Comm, data []T, to, tag int) error {
	return c.sendAndWait(ctx, bytesOf(data), to, tag, true)
}

// Isend begins to send data: MPI_Isend. What is wrong with the arguments Wait tells.
func Isend[T Element](c *Comm, data []T, to, tag int) *Request {
	return c.beginSend(new(Request), bytesOf(data), to, tag, false)
}

// Issend is Isend of which Wait returns when a receive has the message: MPI_Issend.
func Issend[T Element](c *Comm, data []T, to, tag int) *Request {
	return c.beginSend(new(Request), bytesOf(data), to, tag, true)
}

// Recv receives the first message of a rank, or of AnySource, with a tag, or with AnyTag, that no
// earlier receive takes. It is MPI_Recv. Errors: ErrRank, ErrTag, ErrTruncate, ErrWithdrawn,
// ErrClosed; a *ProcessError; ctx's, and then no message was received. From AnySource it fails as
// soon as a process of the communicator is down that AckFailed has not acknowledged: that may have
// been the one to send. Memory that the sender may write into, of Config.OfferFrom bytes or more
// and from a named rank, is the caller's again once that has answered or is down: ctx then ends
// Recv by up to Config.PeerTimeout later, if the sender is silent.
func Recv[T Element](ctx context.Context, c *Comm, buf []T, from, tag int) (Status, error) {
	w := c.w
	r := w.request()
	r.blocking = true
	c.beginReceive(r, bytesOf(buf), from, tag)
	s, err := r.finish(ctx)
	if r.completion.Done() {
		w.putRequest(r)
	}
	return s, err
}

// Irecv begins to receive into buf: MPI_Irecv. What is wrong with the arguments Wait tells.
func Irecv[T Element](c *Comm, buf []T, from, tag int) *Request {
	return c.beginReceive(new(Request), bytesOf(buf), from, tag)
}

// Sendrecv sends and receives at once, so that a ring of processes does not wait in a circle:
// MPI_Sendrecv. Errors: those of Send and of Recv, and ctx ends it as it ends these. If the send
// fails a message may have been received all the same: the Status beside the error says which, or
// has AnySource if none was.
func Sendrecv[T, U Element](
	ctx context.Context, c *Comm, data []T, to, tag int, buf []U, from, fromTag int,
) (Status, error) {
	r := Irecv(c, buf, from, fromTag)
	sent := false
	defer r.endUnless(&sent)
	err := Send(ctx, c, data, to, tag)
	if err == nil {
		sent = true
		return r.finish(ctx)
	}
	s, outcome := r.end(err) // and buf is the caller's again
	sent = true
	switch {
	case errors.Is(outcome, ErrTruncate):
		err = errors.Join(err, outcome)
	case outcome != nil:
		s = noMessage
	}
	return s, err
}

// begin makes a request anew.
func (c *Comm) begin(r *Request, memory []byte) {
	r.comm, r.memory, r.status = c, memory, noMessage
	r.send, r.receive, r.withdrawn, r.unpack = matching.Send{}, matching.Receive{}, false, nil
	r.stopped, r.multicast = nil, multicastWait{}
	r.completion.Reset()
}

// fail makes a request anew that has failed.
func (c *Comm) fail(r *Request, err error) {
	c.begin(r, nil)
	r.completion.Complete(err)
}

func (c *Comm) sendAndWait(ctx context.Context, data []byte, to, tag int, synchronous bool) error {
	w := c.w
	r := w.request()
	r.blocking = true
	c.beginSend(r, data, to, tag, synchronous)
	_, err := r.finish(ctx)
	if !r.withdrawn { // else the receiver may still ask for it
		w.putRequest(r)
	}
	return err
}

func (c *Comm) beginSend(r *Request, data []byte, to, tag int, synchronous bool) *Request {
	c.begin(r, data)
	err := checkTag(tag)
	switch {
	case err != nil:
	case to == ProcNull:
		err = c.refusal()
	default:
		err = c.checkRank(to)
	}
	if err != nil || to == ProcNull {
		if err != nil {
			err = fmt.Errorf("send to rank %d: %w", to, err)
		}
		r.completion.Complete(err)
		return r
	}
	return c.send(r, &matching.Send{
		To: c.members[to], Envelope: matching.Envelope{Context: c.context, Tag: int32(tag)}, Synchronous: synchronous,
	})
}

// send begins a send whose arguments are right, of the request's memory.
func (c *Comm) send(r *Request, s *matching.Send) *Request {
	w, to := c.w, s.To
	w.mu.Lock()
	if w.refuses(r, to) {
		return r
	}
	defer w.expect(w.expected(to)) // also if the calls below do not return
	r.send = *s
	r.send.Size, r.send.Owner = len(r.memory), r
	w.stats.Sent++
	w.stats.SentBytes += uint64(len(r.memory))
	if len(r.memory) > w.cfg.EagerLimit {
		w.awaitOffer(r)
	}
	if !r.active { // the world was closed, or the communicator revoked
		w.mu.Unlock()
		return r
	}
	w.out = w.engine.Send(&r.send, w.out[:0])
	w.act()
	if s.Direct && !w.aging && w.engine.Held(&r.send) {
		w.beginAging()
	}
	r.run()
	return r
}

// A send that would have to be requested waits for an offer that may be under way: that is little
// beside the time that its bytes take, and less than asking first takes.
const (
	offerTime  = 3 * time.Microsecond
	offerPolls = 100 // in virtual time, and where a poll takes next to none
)

// awaitOffer polls for an offer for a send, which ends if a poll does not return. The caller holds
// mu, which awaitOffer gives back meanwhile.
func (w *World) awaitOffer(r *Request) {
	polled := false
	defer func() {
		if !polled {
			w.complete(r, errUnreturned)
			w.mu.Unlock()
		}
	}()
	start, s := time.Now(), &r.send
	for k := 0; k < offerPolls && !w.engine.HasOffer(s.To, &s.Envelope) && time.Since(start) < offerTime; k++ {
		w.pollOutside()
	}
	polled = true
}

// refuses completes a request that cannot succeed; then it gives mu back.
func (w *World) refuses(r *Request, with matching.Rank) bool {
	err := r.comm.over()
	switch {
	case w.closed:
		err = ErrClosed
	case err == nil && with >= 0:
		err = w.all[with].err
	}
	if err == nil {
		w.activate(r)
		return false
	}
	r.completion.Complete(err)
	w.mu.Unlock()
	return true
}

func (c *Comm) beginReceive(r *Request, buf []byte, from, tag int) *Request {
	c.begin(r, buf)
	q, err := c.pattern(from, tag)
	if err != nil || from == ProcNull {
		if err != nil {
			err = fmt.Errorf("receive from rank %d: %w", from, err)
		} else {
			r.status = fromNobody
		}
		r.completion.Complete(err)
		return r
	}
	return c.receive(r, q.Context, q.Source, q.Tag)
}

// receive begins a receive whose arguments are right.
func (c *Comm) receive(r *Request, context uint32, from matching.Rank, tag int32) *Request {
	w := c.w
	w.mu.Lock()
	if w.refuses(r, matching.AnySource) { // what a process has sent before it went is received
		return r
	}
	defer w.expect(w.expected(from)) // also if the calls below do not return
	r.receive = matching.Receive{
		Pattern:  matching.Pattern{Source: from, Context: context, Tag: tag},
		Capacity: len(r.memory), Owner: r,
	}
	w.out = w.engine.Post(&r.receive, w.out[:0])
	w.act()
	w.failIfMissing(r)
	r.run()
	return r
}

// run is World.run for a request that is begun: if it does not return, the request ends.
func (r *Request) run() {
	ran := false
	defer r.endUnless(&ran)
	r.comm.w.run()
	ran = true
}

// expected returns which processes are to be probed from now on, as somebody waits for a rank, or
// for AnySource. The caller holds mu.
func (w *World) expected(rank matching.Rank) (expect []*process) {
	switch {
	case rank == matching.AnySource && !w.probing:
		w.probing, expect = true, w.all
	case rank >= 0 && !w.all[rank].Expected:
		expect = w.all[rank : rank+1]
	}
	for _, p := range expect {
		p.Expected = true
	}
	return expect
}

// expect has processes probed from now on, so that their death is noticed.
func (w *World) expect(all []*process) {
	for _, p := range all {
		w.probe(w.layer.Handler, p)
	}
}

// runExpecting is run, and then expect, also if run does not return. The caller holds mu, which
// runExpecting gives back.
func (w *World) runExpecting(all []*process) {
	defer w.expect(all)
	w.run()
}

// probe has a handler probe a process; but not one that was found down meanwhile, which it is for
// good. The process is sent a record, too, which one that takes this process for down answers: a
// probe it answers as one of a stranger, which it has never heard of.
func (w *World) probe(h *memfifo.Handler, p *process) {
	_ = h.Expect(p.ID) // a node that is not known, or a world that is closed: others tell
	w.mu.Lock()
	down := p.err != nil
	if p != w.me && !w.closed {
		w.greet(p)
	}
	w.run()
	if down {
		h.Unexpect(p.ID)
	}
}

// nothing says nothing to who takes it: it withdraws no offer.
var nothing = matching.Record{Kind: matching.Withdraw}

// greet sends a process nothing. One that has got nothing else may have left, or not be there yet:
// Close does not wait until it has taken that. The caller holds mu, and has what was queued carried
// out.
func (w *World) greet(p *process) {
	met := p.met
	w.queue(p.rank, item{record: nothing})
	p.met = met
}

// Cancel cancels a receive: Wait then returns ErrCancelled, unless a message was already on its way
// into it. It is MPI_Cancel. A send cannot be cancelled.
func (r *Request) Cancel() {
	if r == nil || r.comm == nil {
		return // it was never begun
	}
	w := r.comm.w
	w.mu.Lock()
	if !r.active || r.receive.Owner != r {
		w.mu.Unlock()
		return
	}
	w.out = w.engine.Cancel(&r.receive, w.out[:0])
	w.act()
	w.run()
}

// finish waits for a request that nobody else knows. If the wait ends by an error, or does not
// return, so does the request: its memory is the caller's.
func (r *Request) finish(ctx context.Context) (Status, error) {
	waited := false
	defer r.endUnless(&waited)
	err := r.await(ctx)
	waited = true
	return r.end(err)
}

// endUnless ends a request whose caller goes before all is done, also if that panics or ends its
// goroutine.
func (r *Request) endUnless(done *bool) {
	if !*done && r.comm != nil {
		_, _ = r.end(errUnreturned)
	}
}

// end ends a request whose wait is over, if it is not complete, with an error.
func (r *Request) end(err error) (Status, error) {
	switch {
	case r.completion.Done():
		return r.outcome()
	case r.receive.Owner == r:
		return r.cancel(err)
	}
	return Status{}, r.abandon(err)
}

// cancel ends a receive whose wait has ended by an error. A message that is on its way into it is
// received; the wait for it is as long as its sender lives.
func (r *Request) cancel(err error) (Status, error) {
	r.Cancel()
	s, outcome := r.Wait(context.Background())
	if errors.Is(outcome, ErrCancelled) {
		return s, err
	}
	return s, outcome
}

// abandon ends a send whose wait has ended by an error: its memory is the caller's. A receiver that
// has asked for it meanwhile is refused.
func (r *Request) abandon(err error) error {
	w := r.comm.w
	w.mu.Lock()
	if w.engine.CancelSend(&r.send) {
		w.complete(r, err)
	}
	for r.queued.Load() > 0 { // at most as long as the receiver may be silent
		w.idle.Wait()
	}
	r.withdrawn, r.memory = true, nil
	w.mu.Unlock()
	r.takeBack()
	if r.completion.Done() {
		return r.completion.Err()
	}
	return err
}

// request returns one for a call that waits for it.
func (w *World) request() *Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spare.request()
}

func (w *World) putRequest(r *Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare.keepRequest(r)
}

func truncated(size, room int) error {
	return fmt.Errorf("%w: %d bytes for %d", ErrTruncate, size, room)
}
