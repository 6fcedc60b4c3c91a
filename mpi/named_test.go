package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// A world that closes ends its Agree, also while it waits for a process that is dead.
func TestAgree_CloseBehindTheDead(t *testing.T) {
	mortal(t, 2, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		if c.Rank() == 1 {
			all.die(1)
			return
		}
		for range 500 {
			mpi.Isend(c, make([]byte, 16000), 1, 0)
		}
		done := make(chan error)
		go func() { _, err := c.Agree(context.Background(), 1); done <- err }()
		time.Sleep(100 * time.Millisecond)
		_ = c.World().Close()
		if err := <-done; !errors.Is(err, mpi.ErrClosed) {
			t.Error(err)
		}
	})
}

// Whom a barrier has named is down for all else: Failed has it, and it can be acknowledged.
func TestFailed_NamedByABarrier(t *testing.T) {
	mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		if c.Rank() == 2 {
			all.die(2)
			return
		}
		err := c.Barrier(t.Context())
		if !slices.Equal(named(err), []int{2}) || !slices.Equal(c.Failed(), []int{2}) {
			t.Errorf("rank %d: %v, and Failed is %v", c.Rank(), err, c.Failed())
		}
		c.AckFailed()
		_, err = c.Agree(t.Context(), 1)
		must(t, err)
	})
}

// Who is out by an agreement is down here, also if this process hears it: nobody waits for it.
func TestAgree_WhoIsOutIsDown(t *testing.T) {
	mortal(t, 3, fault.Config{}, func(t *testing.T, c *mpi.Comm, all *mortals) {
		if c.Rank() != 1 { // 0 and 2 do not hear each other
			other := all.links[2-c.Rank()].MAC()
			must(t, all.links[c.Rank()].SetConfig(fault.Config{
				Loss: 1, Match: func(f *transport.Frame) bool { return f.Src == other },
			}))
		}
		_, _ = c.Agree(t.Context(), 1) // 0 or 2 is out
		ctx, end := context.WithTimeout(t.Context(), 60*time.Second)
		defer end()
		if c.Rank() == 1 {
			gone := c.Failed()
			if len(gone) != 1 {
				t.Fatalf("down are %v", gone)
			}
			_, err := mpi.Recv(ctx, c, make([]byte, 1), gone[0], 0)
			if !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("a receive from who is out: %v; failed: %v", err, c.Failed())
			}
		}
		time.Sleep(70 * time.Second)
	})
}
