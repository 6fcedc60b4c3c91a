package mcd

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// linkRetry is the pause after a link failed to wait, as it does while its interface is down.
const linkRetry = 10 * time.Millisecond

// linkLoop is the goroutine that answers on link nic while nobody polls. It ends when the link is
// closed.
func (e *Endpoint) linkLoop(nic int) {
	defer e.running.Done()
	for {
		switch err := e.nics[nic].link.Wait(context.Background()); {
		case e.closed.Load():
			return
		case errors.Is(err, transport.ErrClosed): // by somebody else: our waiters must not hang
			e.closePorts()
			return
		case err != nil:
			time.Sleep(linkRetry)
			continue
		}
		if !e.lockPoll() {
			return
		}
		e.busyPoll()
	}
}

// lockPoll takes the poll lock as soon as it is free, or returns false when the endpoint closes.
func (e *Endpoint) lockPoll() bool {
	e.pollWaiters.Add(1)
	defer e.pollWaiters.Add(-1)
	for !e.tryLockPoll() {
		select {
		case <-e.pollUnlocked:
		case <-e.ended:
		}
		if e.closed.Load() {
			return false
		}
	}
	return true
}

// busyPollTime is how long a linkLoop that was woken by several frames at once looks for more
// before it sleeps again: about as long as waking it takes, and longer than a sender needs to make
// its next batch.
const busyPollTime = 30 * time.Microsecond

// busyPoll delivers what woke a linkLoop. One frame is delivered, and that is all: the next may be
// long in coming. But several show that frames come more quickly than goroutines wake, and then the
// loop stays awake as long as they do, unless Config.Spin forbids. The caller holds the poll lock;
// busyPoll gives it back.
func (e *Endpoint) busyPoll() {
	locked, stream := true, false
	defer func() { // also if a Receive function panics
		if locked {
			e.unlockPoll()
		}
	}()
	var idle monotime.Time // since when nothing has come; zero: something just did
	for {
		n := e.poll(false)
		if n > 0 {
			idle = monotime.Time{}
			stream = stream || n > 1 && e.spinning.max > 0
			e.unlockPoll()
			locked = false
			e.flush()
			runtime.Gosched() // those whose messages came should run before the next batch
			if !stream || !e.tryLockPoll() {
				return
			}
			locked = true
			continue
		}
		now := clock.Now()
		if idle.IsZero() {
			idle = now
		}
		if !stream || now.Sub(idle) > busyPollTime {
			e.maskWakeups(false)
			e.unlockPoll()
			locked = false
			e.flush()
			return
		}
		e.maskWakeups(true)
	}
}

// unmaskAfter is how long a program may go without polling before its links' goroutines are woken
// by arrivals again.
const unmaskAfter = 250 * time.Microsecond

// unmaskLoop is the goroutine that unmasks wake-ups when a leader has left them masked, and makes
// the last call of Receive that it owed, if nobody polls any more. It ends when Close closes
// e.masked.
func (e *Endpoint) unmaskLoop() {
	defer e.running.Done()
	tick := time.NewTimer(unmaskAfter)
	defer tick.Stop()
	for range e.masked {
		for {
			seen := e.locked.load()
			tick.Reset(unmaskAfter)
			<-tick.C
			if e.closed.Load() || e.locked.load() == seen && e.tryUnmask() {
				break
			}
		}
	}
}

// tryUnmask unmasks wake-ups unless somebody is polling.
func (e *Endpoint) tryUnmask() bool {
	if !e.tryLockPoll() {
		return false
	}
	defer e.unlockPoll()
	e.maskWakeups(false)
	e.onIdle()
	return true
}
