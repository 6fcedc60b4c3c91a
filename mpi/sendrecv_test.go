package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A Sendrecv whose send fails says which message it has received. What comes behind it is for others.
func TestSendrecv_SendFails(t *testing.T) {
	for name, c := range map[string]struct {
		room int
		want error // besides
	}{"whole": {3, nil}, "cut": {1, mpi.ErrTruncate}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, fault.Config{}, mpi.Config{}, func(t *testing.T, comm *mpi.Comm) {
				switch comm.Rank() {
				case 0:
					long, buf := make([]byte, 1<<20), make([]int, c.room)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					s, err := mpi.Sendrecv(ctx, comm, long, 1, 5, buf, 2, mpi.AnyTag)
					if !errors.Is(err, context.DeadlineExceeded) || c.want != nil && !errors.Is(err, c.want) {
						t.Errorf("a send that nobody receives: %v", err)
					}
					if s.Source != 2 || s.Tag != 6 || mpi.Count[int](s) != 2 || buf[0] != 9 {
						t.Errorf("has received %+v, %v", s, buf)
					}
					s, err = mpi.Sendrecv(t.Context(), comm, long, 3, 5, buf, 2, 7)
					if !errors.Is(err, mpi.ErrRank) || s.Source != mpi.AnySource {
						t.Errorf("a send to nobody: %+v, %v", s, err)
					}
					_, err = mpi.Recv(t.Context(), comm, buf, 2, 7)
					must(t, err)
				case 2:
					must(t, mpi.Send(t.Context(), comm, []int{9, 8}, 0, 6))
					time.Sleep(5 * time.Second)
					must(t, mpi.Send(t.Context(), comm, []int{7}, 0, 7))
				}
				must(t, comm.Barrier(t.Context()))
			})
		})
	}
}
