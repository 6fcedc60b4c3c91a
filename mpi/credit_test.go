package mpi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// late delays each frame by a millisecond.
var late = fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}

// What comes of a revoked communicator by headers beyond what is due gives these back, too: its sender
// would wait for ever.
func TestRevoke_GivesExtraCreditBack(t *testing.T) {
	bubble(t, 2, late, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		d, err := c.Dup(ctx)
		must(t, err)
		must(t, c.Barrier(ctx))
		if c.Rank() == 0 {
			for range 1024 {
				must(t, mpi.Send(ctx, c, []byte{1}, 1, 9))
			}
			for range 300 {
				mpi.Isend(d, []byte{1}, 1, 0)
			}
			r := mpi.Isend(c, []byte{1}, 1, 5)
			if _, err := r.Wait(ctx); err != nil {
				t.Errorf("the send: %v", err)
			}
			time.Sleep(30 * time.Second)
			return
		}
		time.Sleep(time.Second)
		r := mpi.Irecv(c, make([]byte, 1), 0, 5)
		time.Sleep(500 * time.Microsecond)
		d.Revoke()
		if _, err := r.Wait(ctx); err != nil {
			t.Errorf("the receive: %v", err)
		}
		for range 1024 {
			_, err := mpi.Recv(ctx, c, make([]byte, 1), 0, 9)
			must(t, err)
		}
	})
}

// So does a message that Mprobe has taken.
func TestRevoke_GivesBackWhatWasProbed(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		for range 2 {
			d, err := c.Dup(ctx)
			must(t, err)
			var taken []*mpi.Message
			for range 510 {
				if c.Rank() == 0 {
					must(t, mpi.Send(ctx, d, make([]byte, 1000), 1, 0))
				} else {
					m, err := d.Mprobe(ctx, 0, 0)
					must(t, err)
					taken = append(taken, m)
				}
			}
			must(t, c.Barrier(ctx))
			d.Revoke()
			for _, m := range taken {
				if _, err := mpi.MRecv(ctx, m, make([]byte, 1000)); !errors.Is(err, mpi.ErrRevoked) {
					t.Error(err)
				}
			}
			must(t, c.Barrier(ctx))
		}
		short, end := context.WithTimeout(ctx, 10*time.Second)
		defer end()
		if c.Rank() == 0 {
			for k := range 100 {
				if err := mpi.Send(short, c, []byte{1}, 1, 0); err != nil {
					t.Fatalf("no credit left for message %d: %v", k, err)
				}
			}
		} else {
			time.Sleep(20 * time.Second)
		}
	})
}

// A program that only asks finds a message behind any number of others, whether it names the sender or
// not.
func TestIprobe_BehindThousands(t *testing.T) {
	for _, from := range []int{0, mpi.AnySource} {
		bubble(t, 2, late, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			const others = 3000
			ctx := t.Context()
			if c.Rank() == 0 {
				var sends []*mpi.Request
				for range others {
					sends = append(sends, mpi.Isend(c, []byte{1}, 1, 0))
				}
				must(t, mpi.WaitAll(ctx, append(sends, mpi.Isend(c, []byte{2}, 1, 1))...))
				return
			}
			found, buf := false, make([]byte, 1)
			for range 10_000 {
				var err error
				if _, found, err = c.Iprobe(from, 1); found || err != nil {
					must(t, err)
					break
				}
				time.Sleep(time.Millisecond)
			}
			if !found {
				t.Error("not found")
			}
			for k := range others + 1 {
				if _, err := mpi.Recv(ctx, c, buf, 0, k/others); err != nil || int(buf[0]) != 1+k/others {
					t.Fatalf("message %d: %v, %v", k, buf, err)
				}
			}
		})
	}
}
