package ether

import (
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/sim"
)

// timer fires once at an instant that may be moved, as timers of transports are with each frame.
// A queue's events cannot be: so the timer leaves the one that waits where it is, and looks again
// when it comes.
type timer struct {
	queue *sim.Queue
	fire  func()
	at    monotime.Time // when it is due; zero: never
	next  monotime.Time // when the earliest event that waits will look; zero: there is none
	look  func()
}

func (t *timer) init(q *sim.Queue, fire func()) {
	t.queue, t.fire = q, fire
	t.look = t.expire
}

func (t *timer) stop() { t.at = monotime.Time{} }

// set moves the timer. What has passed already is due now.
func (t *timer) set(at monotime.Time) {
	if now := t.queue.Now(); at.Before(now) {
		at = now
	}
	t.at = at
	if t.next.IsZero() || at.Before(t.next) {
		t.next = at
		t.queue.At(at, t.look)
	}
}

func (t *timer) expire() {
	now := t.queue.Now()
	if now != t.next {
		return // one that waited when the timer was moved forward
	}
	t.next = monotime.Time{}
	switch {
	case t.at.IsZero():
	case t.at.After(now):
		t.set(t.at)
	default:
		t.stop()
		t.fire()
	}
}
