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

// sleep waits until a list is woken. The caller holds mu, which is free while it waits.
func (d *Domain) sleep(ctx context.Context, l *waitlist) error {
	c := d.pool.completions.get()
	c.Reset()
	*l = append(*l, c)
	d.mu.Unlock()
	err := d.await(ctx, c)
	d.mu.Lock()
	if err != nil { // else the list was woken
		*l = slices.DeleteFunc(*l, func(x *mcd.Completion) bool { return x == c })
	}
	d.pool.completions.put(c)
	return err
}

// sleepUntil waits until a condition holds, which is looked at whenever the list is woken, or until
// its window or FIFO has ended. It takes mu.
func (d *Domain) sleepUntil(ctx context.Context, l *waitlist, ended *bool, holds func() bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !holds() {
		if *ended || d.closed {
			return ErrClosed
		}
		if err := d.sleep(ctx, l); err != nil {
			return err
		}
	}
	return nil
}
