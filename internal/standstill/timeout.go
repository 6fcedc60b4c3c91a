package standstill

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
)

// WithTimeout is context.WithTimeout, but the time in which this machine stood still does not
// count. So the context has no deadline but its parent's, which ends it whatever happens.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	most := min(max(d/10, time.Millisecond), Least)
	inner, cancel := context.WithCancelCause(parent)
	c := &timeout{Context: parent, inner: inner, end: cancel, watch: Start(clock.Now(), most), left: d}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next()
	return c, c.cancel
}

// ForClose bounds how long a Close waits for other nodes: two of its peer timeouts, as one is what
// a silent node has before it counts as down.
func ForClose(peerTimeout time.Duration) (context.Context, context.CancelFunc) {
	return WithTimeout(context.Background(), 2*min(peerTimeout, math.MaxInt64/2))
}

// timeout is a context that ends with its parent, or once it has seen enough time pass.
type timeout struct {
	context.Context // the parent
	inner           context.Context
	end             context.CancelCauseFunc // of inner

	mu    sync.Mutex // guards what follows
	watch Watch
	left  time.Duration
	timer *time.Timer // of the next look
}

// look counts the time that has passed since the last one, twice in the most that may.
func (c *timeout) look(now monotime.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left -= c.watch.Look(now)
	c.next()
}

// next ends the context if its time is over, and else has look called. The caller holds mu.
func (c *timeout) next() {
	switch {
	case c.inner.Err() != nil:
	case c.left <= 0:
		c.end(context.DeadlineExceeded)
	default:
		c.timer = time.AfterFunc(min(c.left, c.watch.most/2), func() { c.look(clock.Now()) })
	}
}

func (c *timeout) cancel() {
	c.end(context.Canceled)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

// Done and what follows are those of a context.Context.
func (c *timeout) Done() <-chan struct{} { return c.inner.Done() }

// Err returns context.DeadlineExceeded once the time is over.
func (c *timeout) Err() error {
	err := c.inner.Err()
	if err != nil && errors.Is(context.Cause(c.inner), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// AfterFunc has package context call f at the end, without a goroutine that waits for it.
func (c *timeout) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.inner, f) }
