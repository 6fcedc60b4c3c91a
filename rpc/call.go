package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc/internal/wire"
)

// Options of a call.
type Options struct {
	// Idempotent says that the handler may run more than once: a call that fails as the node was
	// down, or closed its domain, is made again, until its context ends; also where the node's next
	// life does not serve it yet.
	Idempotent bool
	// Response is memory for the response, which is appended to it: then a call allocates nothing.
	Response []byte
}

// call is one that waits for its response. Domain.mu guards it, except for the completion.
type call struct {
	completion mcd.Completion
	node       *node
	service    string
	number     uint64
	response   []byte
	buf        []byte      // memory of the request
	waits      func() bool // reports whether it has no response yet: its node may have gone down
	room       roomContext // of its wait for room
}

// Call has a handler of a service run, on another node or on this one, and returns its response.
// See the package's promises. Errors: ErrNoService, ErrOverloaded, ErrTooLarge, ErrVersion,
// ErrClosed; memfifo.ErrPeerDown; mcd.ErrUnknownNode; a *RemoteError; the context's.
func (d *Domain) Call(ctx context.Context, to mcd.NodeID, service string, req []byte) ([]byte, error) {
	return d.CallWith(ctx, to, service, req, Options{})
}

// CallWith is Call with options.
func (d *Domain) CallWith(
	ctx context.Context, to mcd.NodeID, service string, req []byte, o Options,
) ([]byte, error) {
	left := false // the node was down, or about to leave
	for pause := retryFirst; ; pause = min(2*pause, retryLast) {
		resp, err := d.call(ctx, to, service, req, o.Response)
		if err == nil {
			return resp, nil
		}
		leaves := errors.Is(err, memfifo.ErrPeerDown) || errors.Is(err, errClosing)
		left = left || leaves
		if !o.Idempotent || !leaves && !(left && errors.Is(err, ErrNoService)) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-d.ended.Done():
			return nil, fmt.Errorf("%w: %w", ErrClosed, err)
		case <-time.After(pause):
		}
	}
}

// call makes a call once.
func (d *Domain) call(ctx context.Context, to mcd.NodeID, service string, req, resp []byte) ([]byte, error) {
	switch {
	case len(service) == 0 || len(service) > MaxService:
		return nil, fmt.Errorf("call node %d: service of %d bytes (want 1 to %d)", to, len(service), MaxService)
	case len(service)+len(req) > MaxMessage:
		return nil, callError(to, service, fmt.Errorf("request of %d bytes: %w (at most %d, with the service's name)",
			len(req), ErrTooLarge, MaxMessage))
	}
	if err := ctx.Err(); err != nil {
		return nil, callError(to, service, err)
	}
	c, expect := d.begin(to, service, resp)
	if c == nil {
		return nil, callError(to, service, ErrClosed)
	}
	if expect {
		d.expect(c.node)
	}
	c.buf = wire.AppendRequest(c.buf[:0], c.number, service, timeLeft(ctx), req)
	returned := false
	defer func() {
		if !returned { // what is handled in a wait has panicked, or ended the goroutine
			c.room.free()
			d.abandon(c)
		}
	}()
	c.room = roomContext{Context: ctx, ended: d.ended}
	err := c.node.To.PushReconnect(&c.room, c.buf, c.waits)
	c.room.free()
	sent := err == nil
	if sent {
		err = d.layer.Handler.Await(ctx, &c.completion)
	}
	returned = true
	resp, withdrawn := d.finished(c)
	switch {
	case !withdrawn:
		err = c.completion.Err()
	case sent: // withdrawn by err
		d.cancelCall(c)
	}
	d.free(c)
	if _, remote := errors.AsType[*RemoteError](err); err != nil && !remote {
		err = callError(to, service, err)
	}
	return resp, err
}

// abandon gives up a call whose caller waits no more, and has its memory again. It may have been
// sent.
func (d *Domain) abandon(c *call) {
	if _, withdrawn := d.finished(c); withdrawn {
		d.cancelCall(c)
	}
}

// timeLeft returns the time until a context's deadline; 0 is none.
func timeLeft(ctx context.Context) time.Duration {
	at, set := ctx.Deadline()
	if !set {
		return 0
	}
	return min(max(time.Until(at), time.Microsecond), wire.MaxLeft)
}

// begin notes a call that waits; nil if the domain is closed. expect says that the node is to be
// probed from now on.
func (d *Domain) begin(to mcd.NodeID, service string, resp []byte) (c *call, expect bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false
	}
	c = d.spare.getCall()
	if c.waits == nil {
		c.waits = d.isPending(c)
	}
	c.completion.Reset()
	d.lastCall++
	d.stats.Calls++
	c.node, c.service, c.number, c.response = d.layer.Node(to), service, d.lastCall, resp
	d.pending[c.number] = c
	c.node.calls++
	expect = !c.node.Expected
	c.node.Expected = true
	return c, expect
}

// isPending makes what reports whether a call has no response yet.
func (d *Domain) isPending(c *call) func() bool {
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.pending[c.number] == c
	}
}

// finish ends a call. The caller holds mu.
func (d *Domain) finish(c *call, err error) {
	d.forget(c)
	c.completion.Complete(err)
}

// forget has a call be none that waits. The caller holds mu.
func (d *Domain) forget(c *call) {
	delete(d.pending, c.number)
	c.node.calls--
}

// finished returns a call's response. If it has none yet, nobody waits any more: withdrawn.
func (d *Domain) finished(c *call) (resp []byte, withdrawn bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pending[c.number] == c {
		d.forget(c)
		return nil, true
	}
	return c.response, false
}

// cancelCall tells the server that nobody waits any more. The caller does not wait for room, but a
// goroutine does: that may be all that ends the handler.
func (d *Domain) cancelCall(c *call) {
	c.buf = wire.AppendHead(c.buf[:0], wire.Cancellation, wire.OK, c.number)
	if err := c.node.To.PostPush(c.buf); !errors.Is(err, memfifo.ErrBusy) {
		return // it was sent; or the node is down, or all is closed, which ends the handler, too
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if to, rec := c.node.To, bytes.Clone(c.buf); !d.closed {
		d.running.Go(func() { _ = to.Push(d.ended, rec) }) // Close ends it
	}
}

// free keeps a call's memory.
func (d *Domain) free(c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spare.putCall(c)
}

// answered takes a response. The caller holds mu.
func (d *Domain) answered(from mcd.NodeID, r *wire.Record) {
	c := d.pending[r.Call]
	if c == nil || c.node.ID != from {
		d.stats.Unexpected++
		return
	}
	err := ofStatus(r.Status, from, c.service, r.Data)
	if err == nil {
		c.response = append(c.response, r.Data...)
	}
	d.finish(c, err)
}
