package memfifo

import (
	"context"
	"slices"

	"github.com/rawlane/rawlane/mcd"
)

// waitlist is the completions of goroutines that wait for something of a window or FIFO to change.
// Domain.mu guards it.
type waitlist []*mcd.Completion

// wake completes all waits.
func (l *waitlist) wake(err error) {
	for _, c := range *l {
		c.Complete(err)
	}
	*l = (*l)[:0]
}

// sleepUntil waits until a condition holds, which is looked at whenever the list is woken, or until
// its window or FIFO has ended, which is asked with mu held, or all its expected senders are down.
// The caller does not hold mu, nor does anything while the condition is looked at.
func (d *Domain) sleepUntil(ctx context.Context, l *waitlist, ended func() bool, s *senders, holds func() bool) error {
	for !holds() {
		d.mu.Lock()
		c := d.pool.completions.get()
		c.Reset()
		*l = append(*l, c)
		err := s.err()
		if d.closed || ended() {
			err = ErrClosed
		}
		d.mu.Unlock()
		// The list may have been woken just before: so it is looked at once more.
		held := holds()
		if !held && err == nil {
			err = d.await(ctx, c)
		}
		d.mu.Lock()
		*l = slices.DeleteFunc(*l, func(x *mcd.Completion) bool { return x == c })
		d.pool.completions.put(c)
		d.mu.Unlock()
		if held {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
