package mpi_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// Where a collective operation fails at those that wait for a process that is down, or has given up,
// the others come back, too, with an error that names a process; and an Agree behind it is of all.
// From nine processes on some of them wait for none that knows.
func TestLeave_FailsForAll(t *testing.T) {
	const n, gone = 9, 8
	long := func(c *mpi.Comm) []int { return make([]int, 200*c.Size()) }
	for name, call := range map[string]func(ctx context.Context, c *mpi.Comm) error{
		"split": func(ctx context.Context, c *mpi.Comm) error { return second(c.Split(ctx, 0, 0)) },
		"dup":   func(ctx context.Context, c *mpi.Comm) error { return second(c.Dup(ctx)) },
		"window": func(ctx context.Context, c *mpi.Comm) error {
			return second(mpi.NewWin(ctx, c, []int{0}))
		},
		"allreduce": func(ctx context.Context, c *mpi.Comm) error {
			return mpi.Allreduce(ctx, c, long(c), long(c), mpi.Sum)
		},
		"ring": func(ctx context.Context, c *mpi.Comm) error {
			return mpi.Allgatherv(ctx, c, []int{1}, slicesOf(n))
		},
		"begun": func(ctx context.Context, c *mpi.Comm) error {
			return second(mpi.Iallreduce(c, long(c), long(c), mpi.Sum).Wait(ctx))
		},
	} {
		for _, way := range []string{"has left", "gives up", "is silent"} {
			if way == "gives up" && name == "begun" {
				continue // it goes on
			}
			t.Run(name+", one "+way, func(t *testing.T) {
				testFailsForAll(t, n, gone, way, call)
			})
		}
	}
}

func testFailsForAll(
	t *testing.T, n, gone int, way string, call func(ctx context.Context, c *mpi.Comm) error,
) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, n, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
		worlds := openAll(t, eps, mpi.Config{PeerTimeout: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		inAll(worlds, func(c *mpi.Comm) {
			switch {
			case c.Rank() != gone:
				failsHere(ctx, t, c, gone, way, call(ctx, c))
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("rank %d has waited for %v", c.Rank(), took)
				}
			case way == "has left":
				must(t, c.World().Close())
			case way == "is silent":
				must(t, eps[gone].Close())
			default:
				over, cancel := context.WithCancel(ctx)
				cancel()
				_ = call(over, c) // nil where all that it needs is here
				_, _ = c.Agree(ctx, 0)
			}
		})
		closeAll(worlds)
	})
}

// failsHere checks what an operation has come to in one that lives, and agrees with the others.
func failsHere(ctx context.Context, t *testing.T, c *mpi.Comm, gone int, way string, err error) {
	down := new(mpi.ProcessError)
	if way == "gives up" {
		if err != nil && !errors.Is(err, mpi.ErrWithdrawn) { // nil: it had all before the other gave up
			t.Errorf("rank %d: %v", c.Rank(), err)
		}
	} else if !errors.As(err, &down) || down.Rank != gone {
		t.Errorf("rank %d: %v", c.Rank(), err)
	}
	if flags, _ := c.Agree(ctx, 0); flags != 0 {
		t.Errorf("rank %d agrees on %d", c.Rank(), flags)
	}
	if n := c.World().Counters().Malformed; n != 0 {
		t.Errorf("rank %d: %d records are malformed", c.Rank(), n)
	}
}

func slicesOf(n int) [][]int {
	list := make([][]int, n)
	for k := range list {
		list[k] = make([]int, 1)
	}
	return list
}
