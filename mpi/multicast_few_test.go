package mpi_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
)

// One that hears no multicasts says so too where it tells the others by its own what has come.
func TestMulticast_DeafAmongFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps := mcdtest.Open(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				return &withoutMulticasts{Link: l, lost: func() bool { return node == 0 }}
			},
		})
		worlds := openAll(t, eps, mpi.Config{})
		inAll(worlds, func(c *mpi.Comm) {
			for range 100 {
				sum := []int{0}
				if must(t, mpi.Allreduce(t.Context(), c, []int{1}, sum, mpi.Sum)); sum[0] != 2 {
					t.Errorf("rank %d: the sum is %d", c.Rank(), sum[0])
				}
			}
		})
		const most = 17 // those from 2 to 16, and what is sent before that is heard
		if got := worlds[0].Counters().Multicasts; got > most {
			t.Errorf("%d multicasts to one that is deaf, want %d at most", got, most)
		}
		if got := worlds[1].Counters(); got.Asked > most || got.Multicasts != 99 {
			t.Errorf("%d asked for, %d multicasts; want %d at most, and 99", got.Asked, got.Multicasts, most)
		}
		inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
	})
}

// A root to which no multicast comes has not heard what these have told it. It goes on all the same:
// who asks for its next one tells it, too.
func TestMulticast_AskTells(t *testing.T) {
	for failing := 20; failing < 32; failing++ {
		synctest.Test(t, func(t *testing.T) {
			var lost atomic.Bool
			eps := mcdtest.Open(t, 2, mcdtest.Config{
				Endpoint: mcd.Config{Spin: -1},
				Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
					return &withoutMulticasts{Link: l, lost: func() bool { return node == 1 && lost.Load() }}
				},
			})
			worlds := openAll(t, eps, mpi.Config{})
			sum := func(c *mpi.Comm, patience time.Duration) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				return mpi.Allreduce(ctx, c, []int{1}, []int{0}, mpi.Sum)
			}
			inAll(worlds, func(c *mpi.Comm) { must(t, sum(c, time.Second)) })
			lost.Store(true)
			inAll(worlds, func(c *mpi.Comm) {
				for range failing {
					patience := time.Second
					if c.Rank() == 0 {
						patience = time.Millisecond // it does not ask
					}
					err := sum(c, patience)
					if failed := errors.Is(err, context.DeadlineExceeded); failed != (c.Rank() == 0) {
						t.Errorf("rank %d: %v", c.Rank(), err)
					}
					time.Sleep(2*time.Millisecond - time.Duration(c.Rank())*time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				for k := range 64 {
					b := []int{k}
					if err := mpi.Bcast(ctx, c, b, 0); err != nil || b[0] != k {
						t.Errorf("rank %d, after %d that failed, %d: %d, %v", c.Rank(), failing, k, b[0], err)
						return
					}
				}
			})
			lost.Store(false)
			inAll(worlds, func(c *mpi.Comm) { must(t, c.World().Close()) })
		})
	}
}
