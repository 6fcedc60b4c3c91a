package mcd

import (
	"context"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
)

// Await blocks until c is done, and returns its error, or until ctx ends, and returns ctx's error,
// or until the endpoint is closed or has lost all its links, and returns ErrClosed; then c may
// still be completed later. While it waits, the calling goroutine polls. Receive functions must not
// call it.
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
	return e.err()
}

// maxSpinners is how many goroutines spin at once at most, and no more than the process has
// processors. One polls; the others watch their completions and take turns on the processors, which
// those need that have work: with 2,000 of them a turn takes milliseconds. Nor does the runtime
// look at its network poller while goroutines are ready, and there sockets and the goroutines of
// other endpoints' links wait.
const maxSpinners = 8

// wait spins for as long as limit, and then sleeps. Where as many goroutines spin as may, it
// sleeps at once. A wait that sleeps needs the wake-ups, which the last one that spun may have left
// masked.
func (e *Endpoint) wait(ctx context.Context, c *Completion, limit time.Duration) {
	if limit > 0 {
		if e.spinners.Add(1) > min(maxSpinners, e.spinning.procs.Load()) {
			e.sleepInExcess(ctx, c)
			return
		}
		if e.spin(ctx, c, limit) {
			return
		}
	} else if e.tryLockPoll() {
		e.endSpin(true)
	}
	start := clock.Now()
	e.sleep(ctx, c)
	if !c.Done() { // it was given up, and spinning for as long as may be would not have helped
		limit = max(limit, e.spinning.max)
	}
	e.spinning.noteSleep(limit, clock.Now().Sub(start))
}

// sleepInExcess takes the caller out of the spinners and sleeps. The last spinner sees that, and
// unmasks the wake-ups; if all have gone meanwhile, the caller does.
func (e *Endpoint) sleepInExcess(ctx context.Context, c *Completion) {
	e.excess.Add(1)
	defer e.excess.Add(-1)
	if e.stopSpinning() && e.tryLockPoll() {
		e.endSpin(true)
	}
	e.sleep(ctx, c)
}

// stopSpinning takes the caller out of the spinners. It reports whether others sleep in excess and
// nobody spins any more: they need the links' own goroutines. Where the poll lock is taken then,
// its holder unmasks the wake-ups or, after unmaskAfter, the unmaskLoop.
func (e *Endpoint) stopSpinning() (needed bool) {
	return e.spinners.Add(-1) == 0 && e.excess.Load() > 0
}

// spinCheck is how many empty polls pass between looks at the clock and the context: about 1 µs on
// a ring. Where others want the core, one will do, and before the first one where goroutines of
// this process are ready.
const spinCheck = 64

// spin polls, or watches another goroutine poll, until c is done. It returns false if it has used
// up its time, ctx has ended or the endpoint is closed before that. The caller has counted it among
// the spinners.
func (e *Endpoint) spin(ctx context.Context, c *Completion, limit time.Duration) bool {
	leading := false
	defer func() { // also if a Receive function panics
		needed := e.stopSpinning()
		if leading || needed && e.tryLockPoll() {
			e.endSpin(needed || !c.Done())
		}
	}()
	var spun time.Duration // of our own time
	start := clock.Now()
	since, now := start, start
	polite, robbed := e.spinning.isCrowded(), false
	i := 1
	if e.spinning.lendsFirst(e.spinners.Load()) {
		i = spinCheck
	}
	for ; !c.Done(); i++ {
		if !leading && e.claims.Load() == 0 {
			leading = e.tryLockPoll()
		}
		if leading && e.poll(true) == 0 {
			e.maskWakeups()
			e.onIdle()
		}
		if i%spinCheck != 0 && !polite && !robbed || c.Done() {
			continue
		}
		if robbed {
			break
		}
		e.flush()
		now = clock.Now()
		own := now.Sub(since)
		spun += own
		if spun > limit || ctx.Err() != nil || e.over.Load() != nil {
			break
		}
		if leading {
			e.postponeUnmask(now)
			if e.claims.Load() > 0 {
				e.unlockPoll()
				leading = false
			}
		}
		since = e.spinning.rest(now, own, spun, e.spinners.Load())
		robbed = e.spinning.avoids.Load() // a last look, and then asleep
		polite = e.spinning.isCrowded()
	}
	done := c.Done()
	e.spinning.noteShare(spun, max(now.Sub(start), since.Sub(start)))
	if done {
		e.spinning.note(spun) // to a microsecond, and without another look at the clock
		if !robbed {
			e.spinning.noteKept(now.Sub(start))
		}
	}
	return done
}

// endSpin ends a leader's turn. With its own message it leaves at once, and is back soon. Without,
// or if others need it, as they sleep and nobody spins any more, it leaves the links to their own
// goroutines. The caller holds the poll lock; endSpin gives it back.
func (e *Endpoint) endSpin(unmask bool) {
	defer e.unlockPoll()
	if unmask {
		e.setMasks(false)
		e.onIdle()
	}
}
