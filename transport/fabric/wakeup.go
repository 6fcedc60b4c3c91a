package fabric

import (
	"context"
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// wakeup lets goroutines wait for a link's queue, and wakes them.
//
// A waiter first counts itself and then looks at the queue; a sender first fills the queue and then
// looks at the count. So at least one of them sees the other, and no wake-up is lost.
type wakeup struct {
	waiters atomic.Int32
	masked  atomic.Bool
	signal  chan struct{} // capacity 1: look at the queue again
	done    chan struct{} // closed with the link
}

func (w *wakeup) init() {
	w.signal, w.done = make(chan struct{}, 1), make(chan struct{})
}

// arrived wakes a waiter, unless wake-ups are masked. It is called after each frame.
func (w *wakeup) arrived() {
	if w.waiters.Load() > 0 && !w.masked.Load() {
		w.wake()
	}
}

func (w *wakeup) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // the waiter that takes the present signal looks later than now
	}
}

// Wait implements transport.Link. It does not allocate, except what ctx does to be waited for.
func (l *Link) Wait(ctx context.Context) error {
	w := &l.wakeup
	w.waiters.Add(1)
	defer w.waiters.Add(-1)
	for {
		if l.closed.Load() {
			return transport.ErrClosed
		}
		if !w.masked.Load() && l.queue.waiting() {
			if w.waiters.Load() > 1 {
				w.wake() // the next waiter looks too
			}
			return nil
		}
		select {
		case <-w.signal:
		case <-w.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// MaskWakeups implements transport.WakeupMasker.
func (l *Link) MaskWakeups(on bool) {
	l.wakeup.masked.Store(on)
	if !on && l.queue.waiting() {
		l.wakeup.wake()
	}
}
