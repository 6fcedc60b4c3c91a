package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Among many, who gives NewWin up ends it for the others by Revoke, wherever they wait.
func TestNewWin_RevokedByWhoGivesItUp(t *testing.T) {
	for _, k := range []int{1, 3, 6} {
		bubble(t, 10, fault.Config{Delay: 1, DelayMax: time.Millisecond}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			must(t, c.Barrier(ctx))
			use := ctx
			if c.Rank() == 1 {
				short, end := context.WithTimeout(ctx, time.Duration(k)*500*time.Microsecond)
				defer end()
				use = short
			}
			begun := time.Now()
			_, err := mpi.NewWin(use, c, make([]int64, 1))
			if c.Rank() == 1 && err != nil {
				c.Revoke()
			}
			if took := time.Since(begun); took > time.Minute || errors.Is(err, context.DeadlineExceeded) && c.Rank() != 1 {
				t.Errorf("%d us: rank %d after %v: %v", k*500, c.Rank(), took, err)
			}
			time.Sleep(time.Minute)
		})
	}
}
