package memfifo

import (
	"context"

	"github.com/rawlane/rawlane/mcd"
)

// waitlist is the goroutines that wait for something of a window or FIFO to change. Domain.mu
// guards it.
type waitlist struct{ first *waiter }

// waiter is a goroutine that waits until it is woken once.
type waiter struct {
	completion mcd.Completion
	next       *waiter
	listed     bool
}

// add lists a waiter that it takes from the domain's spare ones.
func (l *waitlist) add(d *Domain) *waiter {
	w := d.pool.waiters
	if w == nil {
		w = new(waiter)
	} else {
		d.pool.waiters = w.next
	}
	w.completion.Reset()
	w.next, w.listed = l.first, true
	l.first = w
	return w
}

// wake completes all waits.
func (l *waitlist) wake(err error) {
	for w := l.first; w != nil; {
		next := w.next
		w.next, w.listed = nil, false
		w.completion.Complete(err)
		w = next
	}
	l.first = nil
}

func (l *waitlist) remove(w *waiter) {
	for at := &l.first; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			break
		}
	}
	w.next, w.listed = nil, false
}

// sleep waits until a waiter of a list is woken, and gives it back. The caller holds mu, which is
// free while it waits.
func (d *Domain) sleep(ctx context.Context, w *waiter, list *waitlist) error {
	d.mu.Unlock()
	err := d.await(ctx, &w.completion)
	d.mu.Lock()
	if w.listed {
		list.remove(w)
	}
	w.next = d.pool.waiters
	d.pool.waiters = w
	return err
}
