package mpi

import (
	"errors"
	"testing"
	"testing/synctest"
)

// A process without a window to lend tells all that there is none, and is not down.
func TestNewWin_WithoutAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		other.spare.made = maxWindows
		inBoth(t, func(c *Comm) error {
			if _, err := NewWin(t.Context(), c, make([]int, 1)); !errors.Is(err, ErrWindows) {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
			return c.Barrier(t.Context())
		}, w, other)
		closeTwo(t, w, other)
	})
}
