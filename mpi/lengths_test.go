package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// An Op that is nil is refused in words, by each process and before anything is sent.
func TestCollectives_NoOp(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, x := t.Context(), []int{1, 2, 3}
		began := func(r *mpi.Request) error { _, err := r.Wait(ctx); return err }
		for name, err := range map[string]error{
			"reduce":         mpi.Reduce(ctx, c, x, x, nil, 0),
			"allreduce":      mpi.Allreduce(ctx, c, x, x, nil),
			"iallreduce":     began(mpi.Iallreduce(c, x, x, nil)),
			"scan":           mpi.Scan(ctx, c, x, x, nil),
			"exscan":         mpi.Exscan(ctx, c, x, x, nil),
			"reduce-scatter": mpi.ReduceScatter(ctx, c, x, x[:1], []int{1, 1, 1}, nil),
		} {
			if err == nil || !strings.Contains(err.Error(), "op is nil (want a function that combines") {
				t.Errorf("rank %d, %s: %v", c.Rank(), name, err)
			}
		}
	})
}

// Where one process gives an operation a shorter argument than the others, or a longer one, at least
// one of them is told: nobody takes what was in memory before for what another one has sent.
func TestCollectives_OtherLengths(t *testing.T) {
	began := func(ctx context.Context, r *mpi.Request) error { _, err := r.Wait(ctx); return err }
	all := func(c *mpi.Comm, part int) []int { return make([]int, part*c.Size()) }
	for name, do := range map[string]func(ctx context.Context, c *mpi.Comm, n int) error{
		"bcast": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Bcast(ctx, c, make([]int, n), 0)
		},
		"ibcast": func(ctx context.Context, c *mpi.Comm, n int) error {
			return began(ctx, mpi.Ibcast(c, make([]int, n), 0))
		},
		"gather": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Gather(ctx, c, make([]int, n), all(c, n), 0)
		},
		"scatter": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Scatter(ctx, c, all(c, n), make([]int, n), 0)
		},
		"allgather": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Allgather(ctx, c, make([]int, n), all(c, n))
		},
		"alltoall": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Alltoall(ctx, c, all(c, n), all(c, n))
		},
		"reduce": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Reduce(ctx, c, make([]int, n), make([]int, n), mpi.Sum, 0)
		},
		"allreduce": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Allreduce(ctx, c, make([]int, n), make([]int, n), mpi.Sum)
		},
		"scan": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Scan(ctx, c, make([]int, n), make([]int, n), mpi.Sum)
		},
		"exscan": func(ctx context.Context, c *mpi.Comm, n int) error {
			return mpi.Exscan(ctx, c, make([]int, n), make([]int, n), mpi.Sum)
		},
	} {
		for _, one := range []int{0, 3} {
			for _, n := range [][2]int{{3, 4}, {5, 4}, {0, 500}, {20_000, 500}} {
				t.Run(fmt.Sprintf("%s, rank %d has %d and not %d", name, one, n[0], n[1]), func(t *testing.T) {
					errs := make([]error, 4)
					bubble(t, len(errs), fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						defer cancel()
						mine := n[1]
						if c.Rank() == one {
							mine = n[0]
						}
						errs[c.Rank()] = do(ctx, c, mine)
						time.Sleep(2 * time.Second) // and all that was sent has come
					})
					if errors.Join(errs...) == nil {
						t.Error("all have succeeded")
					}
				})
			}
		}
	}
}
