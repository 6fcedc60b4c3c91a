package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A window of a communicator that is revoked while it is made is made nowhere, or revoked.
func TestNewWin_Revoked(t *testing.T) {
	for at := time.Duration(0); at < 8*time.Millisecond; at += time.Duration(enough(250, 1250)) * time.Microsecond {
		for n := 2; n < 4; n++ {
			bubble(t, n, late, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
				defer cancel()
				d, err := c.Dup(ctx)
				must(t, err)
				must(t, c.Barrier(ctx))
				if c.Rank() == 1 {
					time.AfterFunc(at, d.Revoke)
				}
				_, err = mpi.NewWin(ctx, d, make([]int64, 10))
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d of %d, revoked by rank 1 after %v: %v; revoked: %v", c.Rank(), n, at, err, d.Revoked())
				}
				time.Sleep(61 * time.Second)
			})
		}
	}
}

// Windows are revoked with the communicator that they were made of: what waits ends, and they can be
// freed.
func TestWin_Revoked(t *testing.T) {
	for what, f := range map[string]func(ctx context.Context, v *mpi.Win[int64]) error{
		"lock":  func(ctx context.Context, v *mpi.Win[int64]) error { return v.Lock(ctx, 1, mpi.Exclusive) },
		"start": func(ctx context.Context, v *mpi.Win[int64]) error { return v.Start(ctx, 1) },
		"wait": func(ctx context.Context, v *mpi.Win[int64]) error {
			if err := v.Post(1); err != nil {
				return err
			}
			return v.Wait(ctx)
		},
		"fence": func(ctx context.Context, v *mpi.Win[int64]) error { return v.Fence(ctx) },
		"free":  func(ctx context.Context, v *mpi.Win[int64]) error { return v.Free(ctx) },
	} {
		bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			d, err := c.Dup(ctx)
			must(t, err)
			v, err := mpi.NewWin(ctx, d, make([]int64, 10))
			must(t, err)
			if c.Rank() == 1 {
				must(t, v.Lock(ctx, 1, mpi.Exclusive))
				time.Sleep(time.Second)
				d.Revoke()
			} else {
				time.Sleep(10 * time.Millisecond)
				if err := f(ctx, v); !errors.Is(err, mpi.ErrRevoked) {
					t.Errorf("%s: %v", what, err)
				}
			}
			time.Sleep(time.Second)
			if err := v.Put(ctx, []int64{1}, 0, 0); !errors.Is(err, mpi.ErrRevoked) && !errors.Is(err, mpi.ErrFreed) {
				t.Errorf("a put: %v", err)
			}
			var want error
			if what == "free" && c.Rank() == 0 {
				want = mpi.ErrFreed
			}
			if err := v.Free(ctx); !errors.Is(err, want) {
				t.Errorf("%s, then free: %v, want %v", what, err, want)
			}
		})
	}
}

// What was refused in a window that was revoked is not told of the next one, which has its number.
func TestNewWin_AfterRefusals(t *testing.T) {
	bubble(t, 2, late, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		d, err := c.Dup(ctx)
		must(t, err)
		v := newWin(t, d, make([]int64, 10))
		must(t, v.Fence(ctx))
		if c.Rank() == 1 {
			time.Sleep(100 * time.Millisecond)
			d.Revoke()
		}
		for c.Rank() == 0 && !d.Revoked() {
			_ = v.Put(ctx, []int64{1}, 1, 0)
			time.Sleep(50 * time.Microsecond)
		}
		must(t, v.Free(ctx))
		time.Sleep(time.Second)
		v = newWin(t, c, make([]int64, 10))
		must(t, v.Fence(ctx))
		must(t, v.Put(ctx, []int64{1}, 1-c.Rank(), 0))
		must(t, v.Fence(ctx))
		must(t, v.Free(ctx))
	})
}

// A process that gives up to make a window tells the others, wherever they wait for it.
func TestNewWin_GivenUp(t *testing.T) {
	for after := time.Duration(0); after < 8*time.Millisecond; after += time.Duration(enough(250, 1250)) * time.Microsecond {
		bubble(t, 3, late, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			must(t, c.Barrier(ctx))
			mine := ctx
			if c.Rank() == 1 {
				mine, cancel = context.WithTimeout(ctx, after)
				defer cancel()
			}
			_, err := mpi.NewWin(mine, c, make([]int64, 10))
			if c.Rank() != 1 && errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("rank %d, given up by rank 1 after %v: %v", c.Rank(), after, err)
			}
			time.Sleep(2 * time.Minute)
		})
	}
}
