package mpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rawlane/rawlane/mcd"
)

// WaitAll waits for all requests: MPI_Waitall. The error joins those of the requests that failed,
// each with its place in the list; with ctx's end requests may still be active.
func WaitAll(ctx context.Context, requests ...*Request) error {
	var errs []error
	for k, r := range requests {
		if _, err := r.Wait(ctx); err != nil {
			errs = append(errs, fmt.Errorf("request %d: %w", k, err))
		}
	}
	return errors.Join(errs...)
}

// WaitAny waits until one of the requests is complete whose outcome was not returned yet, by a Wait
// or Test of it alone or of several, and returns its place: MPI_Waitany. It is -1 if there is none
// such; operations that were not started are none. The error is the request's, or ctx's.
func WaitAny(ctx context.Context, requests ...*Request) (int, Status, error) {
	for {
		left := 0
		for k, r := range requests {
			switch {
			case r.isNull() || r.returned.Load():
			case !r.completion.Done():
				left++
			case r.returned.CompareAndSwap(false, true):
				s, err := r.outcome()
				return k, s, err
			}
		}
		if left == 0 {
			return -1, Status{}, nil
		}
		if err := awaitAny(ctx, requests); err != nil {
			return -1, Status{}, err
		}
	}
}

// WaitSome waits until at least one of the requests is complete whose outcome was not returned yet,
// and returns the places of all such: MPI_Waitsome. It is nil if there is none. The error joins
// those of the requests, each with its place in the list, or is ctx's.
func WaitSome(ctx context.Context, requests ...*Request) (places []int, err error) {
	k, _, err := WaitAny(ctx, requests...)
	if k < 0 {
		return nil, err
	}
	if err != nil {
		err = fmt.Errorf("request %d: %w", k, err)
	}
	places = []int{k}
	for k, r := range requests {
		if r != nil && r.completion.Done() && r.returned.CompareAndSwap(false, true) {
			places = append(places, k)
			if _, failure := r.outcome(); failure != nil {
				err = errors.Join(err, fmt.Errorf("request %d: %w", k, failure))
			}
		}
	}
	return places, err
}

// anyOf is a goroutine that waits for one of several requests, of one world or of several.
type anyOf struct {
	completion mcd.Completion
	woken      atomic.Bool
}

// awaitAny waits until one of the requests is complete that was not returned.
func awaitAny(ctx context.Context, requests []*Request) error {
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *Request) bool {
		return r.isNull() || r.returned.Load()
	})
	if len(requests) == 0 { // another goroutine has returned the last one
		return nil
	}
	var a anyOf
	defer a.leave(requests)
	waits := true // unless one is complete, or another goroutine has returned the last one
	for _, r := range requests {
		waits = a.joins(r) && waits
	}
	if !waits {
		return nil
	}
	err := requests[0].comm.w.await(ctx, &a.completion)
	if a.completion.Done() {
		return nil
	}
	return err
}

// leave undoes joins.
func (a *anyOf) leave(requests []*Request) {
	for _, r := range requests {
		w := r.comm.w
		w.mu.Lock()
		r.any = slices.DeleteFunc(r.any, func(other *anyOf) bool { return other == a })
		w.mu.Unlock()
	}
}

// joins has a request wake the goroutine. It reports false for one that is complete.
func (a *anyOf) joins(r *Request) bool {
	w := r.comm.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.active {
		r.any = append(r.any, a)
	}
	return r.active
}

// completeAny wakes those that wait for one of several requests, as this one is complete. The
// caller holds mu.
func (r *Request) completeAny() {
	for _, a := range r.any {
		if !a.woken.Swap(true) {
			a.completion.Complete(nil)
		}
	}
	r.any = nil
}

// Persistent is a send or a receive whose arguments are always the same. Start begins it, each time
// once the last request is complete: MPI_Send_init, MPI_Recv_init. Once its outcome was returned
// there is nothing to wait for until the next Start, as before the first one.
type Persistent struct {
	Request
	start func(r *Request)
}

// SendInit makes a persistent send of data.
func SendInit[T Element](c *Comm, data []T, to, tag int) *Persistent {
	return persistent(func(r *Request) { c.beginSend(r, bytesOf(data), to, tag, false) })
}

// RecvInit makes a persistent receive into buf.
func RecvInit[T Element](c *Comm, buf []T, from, tag int) *Persistent {
	return persistent(func(r *Request) { c.beginReceive(r, bytesOf(buf), from, tag) })
}

// persistent returns an operation that was not started: it is complete, with an empty status.
func persistent(start func(r *Request)) *Persistent {
	p := &Persistent{start: start}
	p.persistent = true
	p.completion.Complete(nil)
	p.returned.Store(true)
	return p
}

// Start begins the operation: MPI_Start. Its request has to be complete, or new: else ErrActive.
// One goroutine at a time starts it, waits for it or tests it.
func (p *Persistent) Start() error {
	if _, done, _ := p.Test(); !done {
		return ErrActive
	}
	p.returned.Store(false)
	p.start(&p.Request)
	return nil
}

// Bsend sends a copy of data, and does not wait: MPI_Bsend. The copy is the library's until the
// message is received, for which World.Close waits; one that is lost by then, as the receiver is
// down or the communicator is revoked, nobody is told of. Errors: those of Send that are known at
// once.
func Bsend[T Element](c *Comm, data []T, to, tag int) error {
	r := Isend(c, slices.Clone(data), to, tag)
	w := c.w
	w.mu.Lock()
	r.detached = r.active
	w.mu.Unlock()
	if !r.detached {
		_, err := r.outcome()
		return err
	}
	return nil
}

// Rsend is Send for those who know that the receive is posted: MPI_Rsend. It gains nothing here, as
// the receiver tells its senders.
func Rsend[T Element](ctx context.Context, c *Comm, data []T, to, tag int) error {
	return Send(ctx, c, data, to, tag)
}
