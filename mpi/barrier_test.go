package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A Barrier may be called again until it comes through: what is called behind it is one operation
// with the others'.
func TestBarrier_ResumedBeforeCollectives(t *testing.T) {
	behind := map[string]func(ctx context.Context, c *mpi.Comm) error{
		"bcast":  func(ctx context.Context, c *mpi.Comm) error { return mpi.Bcast(ctx, c, []int{1}, 0) },
		"gather": func(ctx context.Context, c *mpi.Comm) error { return mpi.Gather(ctx, c, []int{1}, make([]int, 3), 0) },
		"allreduce of many": func(ctx context.Context, c *mpi.Comm) error {
			return mpi.Allreduce(ctx, c, make([]int, 2000), make([]int, 2000), mpi.Sum)
		},
		"dup":     func(ctx context.Context, c *mpi.Comm) error { _, err := c.Dup(ctx); return err },
		"barrier": func(ctx context.Context, c *mpi.Comm) error { return c.Barrier(ctx) },
		"ibarrier": func(ctx context.Context, c *mpi.Comm) error {
			_, err := c.Ibarrier().Wait(ctx)
			return err
		},
	}
	for name, op := range behind {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if c.Rank() > 0 {
					time.Sleep(time.Second)
					must(t, c.Barrier(ctx))
				}
				calls := 0
				for c.Rank() == 0 {
					short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
					err := c.Barrier(short)
					cancel()
					if calls++; err == nil {
						break
					}
				}
				if c.Rank() == 0 && calls < 2 {
					t.Error("it was not resumed")
				}
				must(t, op(ctx, c))
				must(t, mpi.Allreduce(ctx, c, []int{c.Rank()}, []int{0}, mpi.Sum))
			})
		})
	}
}

// Nothing is begun in a world that is closed, and no message found there: also where it takes no
// other process.
func TestClosedWorld(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		must(t, mpi.Send(ctx, c, []int{1}, 0, 0))
		must(t, c.World().Close())
		for name, op := range map[string]func() error{
			"iprobe":    func() error { _, _, err := c.Iprobe(0, 0); return err },
			"probe":     func() error { _, err := c.Probe(ctx, 0, 0); return err },
			"mprobe":    func() error { _, err := c.Mprobe(ctx, 0, 0); return err },
			"barrier":   func() error { return c.Barrier(ctx) },
			"bcast":     func() error { return mpi.Bcast(ctx, c, []int{1}, 0) },
			"allreduce": func() error { return mpi.Allreduce(ctx, c, []int{1}, []int{0}, mpi.Sum) },
			"dup":       func() error { _, err := c.Dup(ctx); return err },
			"window":    func() error { _, err := mpi.NewWin(ctx, c, []int{1}); return err },
		} {
			if err := op(); !errors.Is(err, mpi.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
