package fault

import (
	"context"
	"errors"
	"slices"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// wait is a Wait in progress: a context around the caller's. Cancelling it makes the Wait look at
// the delay queue again.
type wait struct{ cancel context.CancelFunc }

// Wait waits for the inner link, or until a delayed frame is due. It may end for a frame that Poll
// then loses or delays. Unlike Send and Poll it allocates: a context.
func (l *Link) Wait(ctx context.Context) error {
	for {
		again, err := l.waitOnce(ctx)
		if !again {
			return err
		}
	}
}

// waitOnce waits until something changes. again says that it is no reason for Wait to return.
func (l *Link) waitOnce(ctx context.Context) (again bool, err error) {
	l.mu.Lock()
	due, some := l.delayed.next()
	now := clock.Now()
	switch {
	case l.closed.Load():
		l.mu.Unlock()
		return false, transport.ErrClosed
	case l.masked:
		some = false // MaskWakeups(false) makes this Wait look again
	case some && !due.After(now):
		l.mu.Unlock()
		return false, ctx.Err()
	}
	inner, cancel := context.WithCancel(ctx)
	if some {
		cancel() // the one without a deadline
		inner, cancel = context.WithTimeout(ctx, due.Sub(now))
	}
	w := &wait{cancel}
	l.waits = append(l.waits, w)
	ignoreFrames := l.masked && l.masker == nil
	l.mu.Unlock()
	defer l.end(w)

	if ignoreFrames {
		<-inner.Done()
		err = inner.Err()
	} else {
		err = l.Link.Wait(inner)
	}
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	default:
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled), err
	}
}

func (l *Link) end(w *wait) {
	w.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waits, w); i >= 0 {
		l.waits = slices.Delete(l.waits, i, i+1)
	}
}

// wakeAll makes each Wait look again. The lock is held.
func (l *Link) wakeAll() {
	for _, w := range l.waits {
		w.cancel()
	}
}

// MaskWakeups implements transport.WakeupMasker, whether or not the inner link does: neither
// arriving frames nor delayed frames that become due end a Wait until MaskWakeups(false).
func (l *Link) MaskWakeups(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.masked = on
	if l.masker != nil {
		l.masker.MaskWakeups(on)
	}
	// If the inner link masks by itself, its waits need to look again only for delayed frames.
	if _, some := l.delayed.next(); l.masker == nil || some && !on {
		l.wakeAll()
	}
}
