package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
)

// timer fires once at an instant that may be moved, as the timers of transports are with each
// frame. Events of a queue cannot be moved: the timer leaves a waiting event where it is, and
// checks the time again when it comes.
type timer struct {
	queue   *sim.Queue
	fire    func()
	due     monotime.Time // zero: never
	event   monotime.Time // the earliest waiting event; zero: there is none
	onEvent func()
}

func (t *timer) init(q *sim.Queue, fire func()) {
	t.queue, t.fire = q, fire
	t.onEvent = t.check
}

func (t *timer) stop() { t.due = monotime.Time{} }

// set moves the timer. An instant in the past means now.
func (t *timer) set(at monotime.Time) {
	if now := t.queue.Now(); at.Before(now) {
		at = now
	}
	t.due = at
	if t.event.IsZero() || at.Before(t.event) {
		t.event = at
		t.queue.At(at, t.onEvent)
	}
}

func (t *timer) check() {
	now := t.queue.Now()
	if now != t.event {
		return // an event from before the timer was moved forward
	}
	t.event = monotime.Time{}
	switch {
	case t.due.IsZero():
	case t.due.After(now):
		t.set(t.due)
	default:
		t.stop()
		t.fire()
	}
}
