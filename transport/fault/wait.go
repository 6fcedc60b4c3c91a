package fault

import (
	"context"
	"errors"
	"slices"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// sleeper is a Wait in progress. Its context ends early to have it look again.
type sleeper struct{ wake context.CancelFunc }

// Wait waits for the link inside, or until a frame that is held back is due. It may end for a frame that Poll
// then loses or holds back. Unlike Send and Poll it allocates: a context.
func (l *Link) Wait(ctx context.Context) error {
	for {
		again, err := l.sleep(ctx)
		if !again {
			return err
		}
	}
}

// sleep waits until something changes, and reports whether that is no reason yet for Wait to return.
func (l *Link) sleep(ctx context.Context) (again bool, err error) {
	l.mu.Lock()
	due, held := l.held.next()
	now := clock.Now()
	switch {
	case l.closed.Load():
		l.mu.Unlock()
		return false, transport.ErrClosed
	case l.quiet:
		held = false // MaskWakeups(false) wakes, and then it counts
	case held && !due.After(now):
		l.mu.Unlock()
		return false, ctx.Err()
	}
	alarm, wake := context.WithCancel(ctx)
	if held {
		wake() // the one without a deadline
		alarm, wake = context.WithTimeout(ctx, due.Sub(now))
	}
	s := &sleeper{wake}
	l.sleepers = append(l.sleepers, s)
	deaf := l.quiet && l.quieter == nil
	l.mu.Unlock()
	defer l.awake(s)

	if deaf {
		<-alarm.Done()
		err = alarm.Err()
	} else {
		err = l.Link.Wait(alarm)
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

func (l *Link) awake(s *sleeper) {
	s.wake()
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.sleepers, s); i >= 0 {
		l.sleepers = slices.Delete(l.sleepers, i, i+1)
	}
}

// wakeAll has each Wait look again. The lock is held.
func (l *Link) wakeAll() {
	for _, s := range l.sleepers {
		s.wake()
	}
}

// MaskWakeups implements transport.WakeupMasker, whether or not the link inside does: neither frames that arrive nor frames
// that become due end a Wait until MaskWakeups(false).
func (l *Link) MaskWakeups(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quiet = on
	if l.quieter != nil {
		l.quieter.MaskWakeups(on)
	}
	// A link that can be quiet itself has its sleepers looked after, unless they must hear of held frames.
	if _, held := l.held.next(); l.quieter == nil || held && !on {
		l.wakeAll()
	}
}
