package fabric

import (
	"context"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// sleep lets goroutines wait for a link's queue, and wakes them.
//
// A waiter first counts itself among the sleepers and then looks at the queue; a sender first fills the queue and then
// looks whether there are sleepers. So one of the two sees the other, and no wake-up is lost.
type sleep struct {
	sleepers atomic.Int32
	quiet    atomic.Bool
	wake     chan struct{} // capacity 1: look again
	done     chan struct{} // closed with the link
}

func (s *sleep) init() {
	s.wake, s.done = make(chan struct{}, 1), make(chan struct{})
}

// arrived is called after each frame; it wakes somebody unless they are to be left asleep.
func (s *sleep) arrived() {
	if s.sleepers.Load() > 0 && !s.quiet.Load() {
		s.kick()
	}
}

func (s *sleep) kick() {
	select {
	case s.wake <- struct{}{}:
	default: // whoever takes the one that is there will look after now
	}
}

// Wait blocks until Poll has something to return, ctx ends (its error) or the link is closed (ErrClosed).
// It does not allocate, but for what ctx does to be waited for.
func (l *Link) Wait(ctx context.Context) error {
	s := &l.sleep
	s.sleepers.Add(1)
	defer s.sleepers.Add(-1)
	for {
		if l.closed.Load() {
			return transport.ErrClosed
		}
		if !s.quiet.Load() && l.queue.waiting() {
			if s.sleepers.Load() > 1 {
				s.kick() // the others may look, too
			}
			return nil
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// MaskWakeups implements transport.WakeupMasker.
func (l *Link) MaskWakeups(on bool) {
	l.sleep.quiet.Store(on)
	if !on && l.queue.waiting() {
		l.sleep.kick()
	}
}
