package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// standsStill has rank 0 stand still, until the last rank, which alone waits for it, and has never
// heard of it, has found it down. All others go on; rank 0 has more than a PeerTimeout less to wait.
func standsStill(t *testing.T, n int, then func(ctx context.Context, c *mpi.Comm)) {
	t.Helper()
	mortal(t, n, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		all.died.Store(0, true)
		all.died.Store(n-1, true) // to rank 0
		switch c.Rank() {
		case 0:
			all.links[0].Cut(true)
			time.Sleep(3 * time.Second)
			all.links[0].Cut(false)
		case n - 1:
			if _, err := mpi.Recv(ctx, c, []byte{1}, 0, 0); !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("of one that stands still: %v", err)
			}
		}
		time.Sleep(3 * time.Second)
		then(ctx, c)
		time.Sleep(time.Second)
	})
}

// A process that has stood still hears from the first one that it waits for that it was found down,
// also if neither has heard of the other before.
func TestDown_TellsWhoStoodStill(t *testing.T) {
	for what, wait := range map[string]func(ctx context.Context, c *mpi.Comm) error{
		"receive": func(ctx context.Context, c *mpi.Comm) error { return second(mpi.Recv(ctx, c, []byte{1}, 1, 0)) },
		"any": func(ctx context.Context, c *mpi.Comm) error {
			return second(mpi.Recv(ctx, c, []byte{1}, mpi.AnySource, 0))
		},
		"probe": func(ctx context.Context, c *mpi.Comm) error { return second(c.Probe(ctx, 1, 0)) },
		"send":  func(ctx context.Context, c *mpi.Comm) error { return mpi.Ssend(ctx, c, []byte{1}, 1, 0) },
	} {
		standsStill(t, 2, func(ctx context.Context, c *mpi.Comm) {
			if c.Rank() > 0 {
				return
			}
			if err := wait(ctx, c); !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// Where one process has found another one down that lives, and is not down to a third one, all agree
// who is out.
func TestAgree_WhereOneHasFoundAnotherDown(t *testing.T) {
	standsStill(t, 3, func(ctx context.Context, c *mpi.Comm) {
		_, err := c.Agree(ctx, 1)
		if got := named(err); !slices.Equal(got, []int{2}) {
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	})
}
