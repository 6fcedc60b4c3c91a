package mpi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A world that closes waits until what Bsend has sent is received: long messages, and more short ones
// than there is credit for; for as long as some are received in each peer timeout.
func TestBsend_IsReceivedBeforeClose(t *testing.T) {
	for _, size := range []int{1, 25_000} {
		bubble(t, 2, fault.Config{}, mpi.Config{PeerTimeout: 2 * time.Second}, func(t *testing.T, c *mpi.Comm) {
			const many = 2000
			buf := make([]int32, size)
			if c.Rank() == 0 {
				for k := range many {
					buf[0] = int32(k)
					must(t, mpi.Bsend(c, buf, 1, 0))
				}
				must(t, c.World().Close())
				return
			}
			for k := range many {
				if k%500 == 0 {
					time.Sleep(time.Second)
				}
				_, err := mpi.Recv(t.Context(), c, buf, 0, 0)
				must(t, err)
				if buf[0] != int32(k) {
					t.Fatalf("%d, want %d", buf[0], k)
				}
			}
		})
	}
}

// What is not received in time, or by a process that goes, Close names, and how much it is.
func TestBsend_LostAtClose(t *testing.T) {
	bubble(t, 3, fault.Config{}, mpi.Config{PeerTimeout: 2 * time.Second}, func(t *testing.T, c *mpi.Comm) {
		switch c.Rank() {
		case 0:
			for to := 1; to < 3; to++ {
				for range to {
					must(t, mpi.Bsend(c, make([]int32, 25_000), to, 0))
				}
			}
			begin := time.Now()
			err := c.World().Close()
			if took := time.Since(begin); took < 2*time.Second || took > 5*time.Second {
				t.Errorf("after %v", took)
			}
			for _, want := range []error{mpi.ErrWithdrawn, mpi.ErrProcessFailed} {
				if !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			}
			for _, want := range []string{"rank 1 has not received 1 buffered ", "rank 2 has not received 2 buffered "} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		case 1:
			time.Sleep(10 * time.Second)
			_, err := mpi.Recv(t.Context(), c, make([]int32, 25_000), 0, 0)
			if !errors.Is(err, mpi.ErrProcessFailed) {
				t.Errorf("%v", err)
			}
		case 2:
			time.Sleep(time.Second)
			must(t, c.World().Close())
		}
	})
}
