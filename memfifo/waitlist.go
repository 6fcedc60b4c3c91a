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

// wakeOne completes the wait that began first.
func (l *waitlist) wakeOne() {
	if len(*l) > 0 {
		(*l)[0].Complete(nil)
		*l = slices.Delete(*l, 0, 1)
	}
}

// sleepUntil waits until a condition holds, which is looked at whenever the list is woken, or until
// its window or FIFO has ended, which is asked with mu held, or all its expected senders are down.
// The caller does not hold mu, nor does anything while the condition is looked at.
func (d *Domain) sleepUntil(ctx context.Context, l *waitlist, ended func() bool, s *senders, holds func() bool) error {
	for !holds() {
		if held, err := d.sleep(ctx, l, ended, s, holds); held || err != nil {
			return err
		}
	}
	return nil
}

// sleep waits until the list is woken. held says that the condition holds by now, and there was no
// wait.
func (d *Domain) sleep(
	ctx context.Context, l *waitlist, ended func() bool, s *senders, holds func() bool,
) (held bool, err error) {
	d.mu.Lock()
	c := d.pool.completions.get()
	c.Reset()
	*l = append(*l, c)
	err = s.err()
	if d.closed || ended() {
		err = ErrClosed
	}
	d.mu.Unlock()
	defer func() { // also if another port's function does not return to the wait
		d.mu.Lock()
		defer d.mu.Unlock()
		*l = slices.DeleteFunc(*l, func(x *mcd.Completion) bool { return x == c })
		d.pool.completions.put(c)
	}()
	// The list may have been woken just before: so it is looked at once more.
	if held = holds(); held {
		return true, nil
	}
	if err == nil {
		err = d.await(ctx, c)
	}
	return false, err
}
