package mcd

import (
	"context"
	"sync/atomic"
)

// Completion is something that will be done once: a message received, a descriptor sent, or an
// event of a layer above. One goroutine waits for it by Endpoint.Await; another, usually a Receive
// function, calls Complete. The zero Completion is ready for use; Reset makes a used one ready
// again.
type Completion struct {
	done   atomic.Bool
	asleep atomic.Bool
	err    error
	wake   chan struct{}           // made at the first sleep, of capacity 1, and kept
	inLink atomic.Pointer[sleeper] // the goroutine that waits sleeps there
}

// Done reports whether Complete was called.
func (c *Completion) Done() bool { return c.done.Load() }

// Err returns what Complete was called with. It may be called once Done is true.
func (c *Completion) Err() error { return c.err }

// Complete marks c as done, with an error or nil, and wakes the goroutine that waits for it. Call
// it once.
func (c *Completion) Complete(err error) {
	c.err = err
	c.done.Store(true)
	if c.asleep.Load() {
		select {
		case c.wake <- struct{}{}:
		default: // woken already
		}
	}
	if s := c.inLink.Load(); s != nil {
		s.link.Interrupt()
	}
}

// Reset makes c ready for another use. No goroutine may be waiting for it.
func (c *Completion) Reset() {
	c.err = nil
	c.asleep.Store(false)
	c.done.Store(false)
	select {
	case <-c.wake: // a wake-up for a sleeper that gave up; a nil channel is never ready
	default:
	}
}

// sleep blocks until c is done, ctx ends or ended is closed. It does not poll.
func (c *Completion) sleep(ctx context.Context, ended <-chan struct{}) {
	if c.wake == nil {
		c.wake = make(chan struct{}, 1)
	}
	c.asleep.Store(true)
	for !c.done.Load() {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		case <-ended:
			return
		}
	}
}
