package mcd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// linkRetry is the pause after a link failed to wait, as it does while its interface is down.
const linkRetry = 10 * time.Millisecond

// keep runs a loop that calls Receive functions, in a goroutine for which Close waits. Another one
// goes on where such a function ends the goroutine, as runtime.Goexit and FailNow of a test do.
func (e *Endpoint) keep(loop func()) {
	over := false
	defer func() {
		if over {
			e.running.Done()
		} else {
			go e.keep(loop)
		}
	}()
	loop()
	over = true
}

// linkLoop is the goroutine that answers on link nic while nobody polls. It ends when the link is
// closed.
func (e *Endpoint) linkLoop(nic int) {
	for {
		switch err := e.nics[nic].wait(); {
		case e.closed.Load():
			return
		case errors.Is(err, transport.ErrNoInterface), errors.Is(err, transport.ErrClosed):
			e.lose(nic, err)
			return
		case err != nil:
			time.Sleep(linkRetry)
			continue
		}
		if !e.lockPoll() {
			return
		}
		e.busyPoll(nil)
	}
}

// wait is the link's Wait, and notes whether it fails. After a failure it returns soon without one,
// if the link is well again but nothing comes.
func (n *nic) wait() error {
	ctx, cancel := context.Background(), func() {}
	if n.err.Load() != nil {
		ctx, cancel = context.WithTimeout(ctx, linkRetry)
	}
	defer cancel()
	err := n.link.Wait(ctx)
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		err = nil
	}
	if err != nil {
		failure := err // a copy: err itself then need not be allocated each time
		n.err.Store(&failure)
	} else if n.err.Load() != nil {
		n.err.Store(nil)
	}
	return err
}

// lose notes that a link is gone for good: its interface was removed, or somebody else has closed
// it. With the last one all waits end, as nothing can come any more.
func (e *Endpoint) lose(nic int, err error) {
	e.nics[nic].gone.Store(true)
	for i := range e.nics {
		if !e.nics[i].gone.Load() {
			return
		}
	}
	e.end(fmt.Errorf("%w: all its links are gone: %w", ErrClosed, err))
}

// isLeft reports whether link nic is to be used: it is not gone or, where all are, says so itself.
func (e *Endpoint) isLeft(nic int) bool { return !e.nics[nic].gone.Load() || e.err() != nil }

// LinkErr returns why nothing can be received by link nic now, or nil: transport.ErrInterfaceDown
// while its interface is down, transport.ErrNoCarrier while that has no carrier, as where a cable
// is out, transport.ErrNoInterface once it is gone. Waits go on meanwhile.
// When all links of the endpoint are gone they end with ErrClosed, and the last one's error. A link
// that the endpoint does not have is an error, too.
func (e *Endpoint) LinkErr(nic int) error {
	if err := e.checkNIC(nic); err != nil {
		return err
	}
	if err := e.nics[nic].err.Load(); err != nil {
		return *err
	}
	l := e.nics[nic].link
	if p, ok := transport.As[transport.Plugged](l); ok && !p.HasCarrier() {
		return fmt.Errorf("%s: %w (plug the cable in, or set the other end up)",
			transport.Name(l), transport.ErrNoCarrier)
	}
	return nil
}

// lockPoll takes the poll lock as soon as it is free, or returns false when all waits end: when the
// endpoint closes, or has lost all its links, and another goroutine has the lock.
func (e *Endpoint) lockPoll() bool {
	e.pollWaiters.Add(1)
	defer e.pollWaiters.Add(-1)
	for !e.tryLockPoll() {
		select {
		case <-e.pollUnlocked:
		case <-e.ended:
		}
		if e.err() != nil {
			return false
		}
	}
	return true
}

// claimPoll is lockPoll for work that a leader does not do. It may spin for as long as Config.Spin
// lets it, and leaves the lock to those who claim it.
func (e *Endpoint) claimPoll() bool {
	e.claims.Add(1)
	defer e.claims.Add(-1)
	return e.lockPoll()
}

// busyPollTime is how long a linkLoop that was woken by several frames at once looks for more
// before it sleeps again: about as long as waking it takes, and longer than a sender needs to make
// its next batch, which is 45 us for a train of 64 KiB. With half as much a long message's receiver
// slept five times.
const busyPollTime = 60 * time.Microsecond

// busyPoll delivers what woke a linkLoop. One frame is delivered, and that is all: the next may be
// long in coming. But several show that frames come more quickly than goroutines wake, and then
// the loop stays awake as long as they do, unless Config.Spin forbids, or other spinners want the
// core. Where it costs next to nothing it polls once more after a single frame, which gives the
// frame's memory back: else the next Wait would find a ring that is not empty. One that waits for
// a message has enough, which is asked after each batch. The caller holds the poll lock; busyPoll
// gives it back. It reports whether anything has come.
func (e *Endpoint) busyPoll(enough func() bool) (came bool) {
	locked, stream := true, false
	defer func() { // also if a Receive function panics
		if stream {
			e.streams.Add(-1)
			e.wakeUnmaskLoop() // another goroutine polls, and may leave the wake-ups masked
		}
		if locked {
			e.unlockPoll()
		}
	}()
	var idle monotime.Time // since when nothing has come; zero: something just did
	for {
		n := e.poll(false)
		if n > 0 {
			came, idle = true, monotime.Time{}
			if !stream && n > 1 && e.spinning.staysAwake() {
				stream = true
				e.streams.Add(1)
			}
			again := stream || e.quickPolls && e.poll(false) > 0
			e.unlockPoll() // in a flood, too: Close wants it
			locked = false
			e.flush()
			if enough != nil && (enough() || !again) {
				return came // to sleep, and so others run, or with its own message
			}
			runtime.Gosched() // those whose messages came should run before the next batch
			if !again || !e.tryLockPoll() {
				return came
			}
			locked = true
			continue
		}
		now := clock.Now()
		if idle.IsZero() {
			idle = now
		}
		if !stream || now.Sub(idle) > busyPollTime {
			break
		}
		e.setMasks(true)
		e.postponeUnmask(now)
	}
	e.setMasks(false)
	if stream {
		stream = false
		e.streams.Add(-1)
	}
	e.unlockPoll()
	locked = false
	e.flush()
	return came
}

// unmaskAfter is how long a program may go without polling before its links' goroutines are woken
// by arrivals again.
const unmaskAfter = 250 * time.Microsecond

// unmaskLoop is the goroutine that unmasks wake-ups when a leader has left them masked, and makes
// the last call of Receive that it owed, or receives what one that did not return has left, if
// nobody polls any more. It sleeps while a link's goroutine that stays awake sees to that, and ends
// with the endpoint.
func (e *Endpoint) unmaskLoop() {
	for range e.masked {
		for !e.closed.Load() && e.streams.Load() == 0 && !e.rests() {
			seen, set := e.turns(), clock.Now()
			e.ticking.Store(true)
			e.tick.Reset(unmaskAfter)
			<-e.ticks
			e.ticking.Store(false)
			if e.tryUnmask(seen, set) {
				break
			}
		}
		if e.closed.Load() {
			return
		}
	}
}

// rests reports whether nobody polls and there is nothing for the unmaskLoop to do. It does not
// take the poll lock, as a Progress that found it taken would not poll. It looks at the lock first:
// a holder that gives it back before has said what it leaves, and one that takes it later signals.
func (s *pollState) rests() bool { return !isHeld(s.lock.Load()) && !s.unfinished.Load() }

// postponeUnmask keeps the unmaskLoop asleep while the caller polls, if it waits for its turn: each
// costs the caller 6 µs and more in a virtual machine. The caller holds the poll lock, and looks at
// the clock now and then.
func (s *pollState) postponeUnmask(now monotime.Time) {
	if s.wakeupsOff && s.ticking.Load() && now.Sub(s.postponed) > unmaskAfter/2 {
		s.postponed = now
		s.tick.Postpone(unmaskAfter)
	}
}

// tryUnmask unmasks wake-ups unless somebody is polling, or has polled since the unmaskLoop's timer
// was set, when the lock had been taken so many times. A poller that has postponed the timer since
// then would have done so again by now.
func (e *Endpoint) tryUnmask(seen uint64, set monotime.Time) bool {
	if !e.tryLockPoll() {
		return false
	}
	defer e.unlockPoll()
	gone := !e.postponed.Before(set) && clock.Now().Sub(e.postponed) >= 2*unmaskAfter
	if e.turns() != seen && !gone {
		return false
	}
	e.setMasks(false)
	if !e.batch.isOver() {
		e.poll(false)
	} else {
		e.onIdle()
	}
	return true
}
