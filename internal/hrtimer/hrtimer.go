// Package hrtimer is a timer for less than a millisecond.
//
// A Go process in which nothing runs sleeps in epoll_wait(2), whose timeout is in milliseconds: a
// timer of 50 µs then fires after 1.1 ms. A timerfd(2) ends that sleep on time. Measured, in an
// idle process: 50 µs become 105 µs (go test -run - -bench . ./internal/hrtimer).
package hrtimer

import (
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
)

// Timer calls a function after a while. It is the runtime's timer and, where the system has one, a
// timerfd a little behind it, for when the runtime is late. So a busy process, in which the runtime
// is on time, has no descriptor to wake up for.
type Timer struct {
	f      func()
	at     atomic.Int64 // when to fire, in ns of the monotonic clock; 0: not set, or it has fired
	coarse *time.Timer
	fine   *alarm // nil: the runtime's timer alone
}

// slack is how far the timerfd is behind the runtime's timer.
const slack = 20 * time.Microsecond

// New returns a timer that is not set. f runs in a goroutine of its own, once for each Reset at
// most. Without precise it is the runtime's timer alone, as it must be in a testing/synctest bubble
// and may be where milliseconds do. Stop it when it is no longer needed.
func New(precise bool, f func()) *Timer {
	t := &Timer{f: f}
	t.coarse = time.AfterFunc(time.Hour, t.fire)
	t.coarse.Stop()
	if precise {
		t.fine = newAlarm(t.fire) // nil where the system has none
	}
	return t
}

// Reset sets the timer to fire after d, and no longer when it would have.
func (t *Timer) Reset(d time.Duration) {
	t.at.Store(int64(clock.Now().Add(d).Since()))
	t.coarse.Reset(d)
	if t.fine != nil {
		t.fine.set(max(d, 0) + slack)
	}
}

// Postpone is Reset for a poller that calls it again and again: it leaves the timerfd alone, which
// costs 6 µs each time in a virtual machine. In an idle process the timer is late by up to a
// millisecond.
func (t *Timer) Postpone(d time.Duration) {
	t.at.Store(int64(clock.Now().Add(d).Since()))
	t.coarse.Reset(d)
}

// fire calls f if it is time to. Either clock may have been on its way when the timer was set anew,
// or have been set by one of two callers, and the instant by the other one.
func (t *Timer) fire() {
	for at := t.at.Load(); at != 0 && t.fireAt(at); at = t.at.Load() {
	}
}

// fireAt is fire for an instant at which the timer was to fire. It reports whether it is to be
// tried again: the timer was set anew meanwhile, perhaps for an earlier instant than the clock is.
func (t *Timer) fireAt(at int64) (again bool) {
	if early := at - int64(clock.Now().Since()); early > 0 {
		t.coarse.Reset(time.Duration(early))
		return t.at.Load() != at
	}
	if t.at.CompareAndSwap(at, 0) {
		t.f()
		return false
	}
	return true
}

// Stop ends the timer for good, and waits for the goroutine that watches the timerfd. A call of f
// by the runtime's timer may begin and end after it. f must not call it.
func (t *Timer) Stop() {
	t.at.Store(0)
	t.coarse.Stop()
	if t.fine != nil {
		t.fine.close()
	}
}
