package mcd

import (
	"context"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
)

// Await blocks until c is done, and returns its error, or until ctx ends, and returns ctx's error,
// or until the endpoint is closed, and returns ErrClosed; then c may still be completed later.
// While it waits, the calling goroutine polls. Receive functions must not call it.
func (e *Endpoint) Await(ctx context.Context, c *Completion) error {
	if !c.Done() {
		e.wait(ctx, c, e.spinning.limit())
	}
	if c.Done() {
		return c.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrClosed
}

// wait spins for as long as limit, and then sleeps.
func (e *Endpoint) wait(ctx context.Context, c *Completion, limit time.Duration) {
	if e.spin(ctx, c, limit) {
		return
	}
	start := clock.Now()
	c.sleep(ctx, e.ended)
	e.spinning.noteSleep(limit, clock.Now().Sub(start))
}

// spinCheck is how many empty polls pass between looks at the clock and the context: about 1 µs on
// a ring. Where others want the core, one will do.
const spinCheck = 64

// spin polls, or watches another goroutine poll, until c is done. It returns false if it has used
// up its time, ctx has ended or the endpoint is closed before that.
func (e *Endpoint) spin(ctx context.Context, c *Completion, limit time.Duration) bool {
	if limit <= 0 {
		return false
	}
	leading := false
	defer func() { // also if a Receive function panics
		if leading {
			e.endSpin(c)
		}
	}()
	var spun time.Duration // of our own time
	start := clock.Now()
	since, now := start, start
	polite := e.spinning.isCrowded()
	for i := 1; !c.Done(); i++ {
		if !leading {
			leading = e.tryLockPoll()
		}
		if leading && e.poll(true) == 0 {
			e.maskWakeups(true)
			e.onIdle()
		}
		if i%spinCheck != 0 && !polite || c.Done() {
			continue
		}
		now = clock.Now()
		spun += now.Sub(since)
		if spun > limit || ctx.Err() != nil || e.closed.Load() {
			break
		}
		e.flush()
		since = e.spinning.rest(now, spun)
		polite = e.spinning.isCrowded()
	}
	done := c.Done()
	e.spinning.noteShare(spun, now.Sub(start))
	if done {
		e.spinning.note(spun) // to a microsecond, and without another look at the clock
	}
	return done
}

// endSpin ends a leader's turn. With its own message it leaves at once, and is back soon; without,
// it leaves the links to their own goroutines.
func (e *Endpoint) endSpin(c *Completion) {
	defer e.unlockPoll()
	if !c.Done() {
		e.maskWakeups(false)
		e.onIdle()
	}
}
