package mpi_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mpi"
)

// Many communicators that are made at once: what comes for each of them before it is made here is
// kept, however many they are.
func TestComm_ManyAtOnce(t *testing.T) {
	const many = 300
	synctest.Test(t, func(t *testing.T) {
		worlds, holds := openHeld(t, mpi.Config{
			PeerTimeout: time.Minute,
			Algorithms:  []mpi.Algorithm{{Operation: "allgather", Name: "dissemination"}},
		})
		var parents [4][many]*mpi.Comm
		inAll(worlds, func(c *mpi.Comm) {
			for k := range many {
				d, err := c.Split(t.Context(), 0, -c.Rank()) // rank 3 is its rank 0
				must(t, err)
				parents[c.Rank()][k] = d
			}
			must(t, c.Barrier(t.Context()))
		})
		holds.Store(true)
		time.AfterFunc(20*time.Second, func() { holds.Store(false) })
		inAll(worlds, func(c *mpi.Comm) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var all sync.WaitGroup
			for k := range many {
				all.Go(func() {
					d, err := parents[c.Rank()][k].Dup(ctx)
					if err == nil {
						_, err = d.Agree(ctx, 1)
					}
					if err != nil {
						t.Errorf("rank %d, %d: %v", c.Rank(), k, err)
					}
				})
			}
			all.Wait()
			if n := c.World().Counters().Malformed; n > 0 {
				t.Errorf("rank %d: %d malformed", c.Rank(), n)
			}
		})
		closeAll(worlds)
	})
}
