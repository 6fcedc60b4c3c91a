package cli

import (
	"context"
	"time"
)

// Pause returns after a while, or when ctx ends with its error.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Compute runs a computation that knows nothing of contexts, and returns its error. If ctx ends it
// returns ctx's error at once: the command ends then, and the computation with it.
func Compute(ctx context.Context, computation func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- computation() }() // until it is done, or the process ends
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
