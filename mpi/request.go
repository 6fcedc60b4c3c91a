package mpi

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Status says which message has gone into a receive, or was found by a probe.
type Status struct {
	Source int // its rank in the communicator
	Tag    int
	size   int
}

// noMessage is the empty status, and fromNobody that of a receive from ProcNull.
var (
	noMessage  = Status{Source: AnySource, Tag: AnyTag}
	fromNobody = Status{Source: ProcNull, Tag: AnyTag}
)

// Bytes returns the message's length, in bytes.
func (s Status) Bytes() int { return s.size }

// Count returns how many elements the message has. It is MPI_Get_count; the last one may be cut.
func Count[T Element](s Status) int { return (s.size + sizeOf[T]() - 1) / sizeOf[T]() }

// Request is a send or a receive that was begun: it is active until it is complete. Its data must
// not be changed, and that of a receive not be read, before Wait or Test has said that it is. One
// goroutine at a time waits for a request, or tests it. A nil one is MPI_REQUEST_NULL, as is one
// that nothing was begun with: there is nothing to wait for.
type Request struct {
	comm    *Comm
	memory  []byte
	send    matching.Send
	receive matching.Receive
	status  Status

	completion mcd.Completion
	blocking   bool // its caller waits until it is complete

	// World.mu guards these.
	active     bool
	next, prev *Request // of those that are active
	any        []*anyOf // who waits for this request or another one

	withdrawn bool  // a send whose memory is its caller's again
	detached  bool  // nobody waits for it, but for Close
	stopped   error // why a receive was cancelled, unless its caller did
	multicast multicastWait

	// queued is not 0 while an item that was not carried out, a Get, or a collective operation uses
	// the request's memory.
	queued atomic.Int32

	returned   atomic.Bool // its outcome was; or it was not started yet
	persistent bool        // it is nothing to wait for again once its outcome was returned

	unpack func(n int) // puts the n bytes that were received where they belong; the waiter's
	packed *scratch    // the memory of elements that are not one piece; likewise

	window *memfifo.Window // in which others use memory; set while queued, and then the waiter's
}

// activate makes a request active. The caller holds mu.
func (w *World) activate(r *Request) {
	r.active = true
	r.next, r.prev = w.active, nil
	if r.next != nil {
		r.next.prev = r
	}
	w.active = r
}

// complete completes a request, unless it is. The caller holds mu.
func (w *World) complete(r *Request, err error) {
	if !r.active {
		return
	}
	r.active = false
	if r.next != nil {
		r.next.prev = r.prev
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		w.active = r.next
	}
	r.completion.Complete(r.comm.failure(err))
	r.completeAny()
	if r.detached && (w.ending || w.unplugged) && err != nil {
		w.lost = append(w.lost, r)
	}
	if r.detached && !w.closed {
		w.running.Go(func() { _, _ = r.outcome() }) // gives its window back, and tells nobody
	}
}

// await waits for a completion, and polls meanwhile. Errors: ErrClosed, also if the endpoint alone
// was closed, which ends all requests; ctx's; the completion's.
func (w *World) await(ctx context.Context, c *mcd.Completion) error {
	err := ofClosed(w.layer.Handler.Await(ctx, c))
	if errors.Is(err, ErrClosed) && !c.Done() {
		w.endpointClosed()
	}
	return err
}

// poll polls once. An endpoint that was closed has nothing more: all requests end.
func (w *World) poll() {
	w.ep.Progress()
	select {
	case <-w.ep.Done():
		_ = w.await(context.Background(), new(mcd.Completion)) // which comes back at once
	default:
	}
}

// awaitOutside is await by one that holds mu, which is given back meanwhile. It is held again
// however the wait ends: a function of another port's, which runs in it, may panic or end the
// goroutine.
func (w *World) awaitOutside(ctx context.Context, c *mcd.Completion) error {
	w.mu.Unlock()
	defer w.mu.Lock()
	return w.await(ctx, c)
}

// pollOutside polls once for one that holds mu, as awaitOutside waits.
func (w *World) pollOutside() {
	w.mu.Unlock()
	defer w.mu.Lock()
	w.ep.Progress()
}

// Wait waits until the request is complete. The end of ctx ends the wait, and not the request.
// Errors: ErrTruncate, ErrCancelled, ErrRevoked, ErrClosed; a *ProcessError; ctx's.
func (r *Request) Wait(ctx context.Context) (Status, error) {
	if r.isNull() {
		return noMessage, nil
	}
	if err := r.await(ctx); !r.completion.Done() {
		return Status{}, err
	}
	r.returned.Store(true)
	return r.outcome()
}

// isNull reports whether there is nothing to wait for.
func (r *Request) isNull() bool {
	return r == nil || r.comm == nil && !r.completion.Done() || r.persistent && r.returned.Load()
}

// await waits until the request is complete. An error may be older than that.
func (r *Request) await(ctx context.Context) error {
	if r.completion.Done() {
		return nil
	}
	return r.comm.w.await(ctx, &r.completion)
}

// Test reports whether the request is complete, and then what Wait would return. It polls once. Of
// what a Revoke or a Close has ended it waits until its memory is not used any more.
func (r *Request) Test() (s Status, done bool, err error) {
	if r.isNull() {
		return noMessage, true, nil
	}
	if !r.completion.Done() {
		r.comm.w.poll()
		if !r.completion.Done() {
			return Status{}, false, nil
		}
	}
	r.returned.Store(true)
	s, err = r.outcome()
	return s, true, err
}

// outcome is what a complete request has come to.
func (r *Request) outcome() (Status, error) {
	if r.queued.Load() > 0 {
		r.awaitIdle()
	}
	r.takeBack()
	err := r.completion.Err()
	if r.unpack != nil && err == nil {
		r.unpack(r.status.size)
	}
	r.unpack = nil
	if r.packed != nil {
		r.packed.giveBack()
		r.packed = nil
	}
	return r.status, err
}

// awaitIdle waits until nobody uses the request's memory: at most as long as a process may be
// silent.
func (r *Request) awaitIdle() {
	w := r.comm.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for r.queued.Load() > 0 {
		w.idle.Wait()
	}
}

// takeBack ends the use of the request's memory by others. A world that closes says goodbye first:
// others are to hear of that, and not that the memory is gone.
func (r *Request) takeBack() {
	if r.comm == nil {
		return // it was never begun
	}
	w := r.comm.w
	w.mu.Lock()
	window, closed := r.window, w.closed && !w.unplugged // else there is nobody to hear anything
	r.window = nil
	w.mu.Unlock()
	if window == nil {
		return
	}
	if closed {
		<-w.departed
	}
	if _, err := window.Rebind(nil); err == nil {
		w.mu.Lock()
		w.giveWindow(window)
		w.mu.Unlock()
	}
}
