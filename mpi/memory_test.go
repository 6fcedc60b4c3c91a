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

// slow is links on which a long message is under way for a while.
var slow = fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}

// ended is a context that is over.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Memory of a receive is its caller's when the call returns, however it does: nothing is written
// into it any more.
func TestMemory_OfReceives(t *testing.T) {
	const size = 1 << 20
	for what, receive := range map[string]func(t *testing.T, c *mpi.Comm, buf []byte) error{
		"Recv": func(t *testing.T, c *mpi.Comm, buf []byte) error {
			return second(mpi.Recv(ended(t), c, buf, 1, 0))
		},
		"Sendrecv": func(t *testing.T, c *mpi.Comm, buf []byte) error {
			return second(mpi.Sendrecv(ended(t), c, pattern(2, size), 1, 5, buf, 1, 0))
		},
		"MRecv": func(t *testing.T, c *mpi.Comm, buf []byte) error {
			m, err := c.Mprobe(t.Context(), 1, 0)
			must(t, err)
			return second(mpi.MRecv(ended(t), m, buf))
		},
	} {
		bubble(t, 2, slow, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			if c.Rank() == 1 {
				must(t, mpi.Send(t.Context(), c, pattern(1, size), 0, 0))
				return
			}
			time.Sleep(time.Second) // the message is announced
			buf := make([]byte, size)
			err := receive(t, c, buf)
			before := slices.Clone(buf)
			time.Sleep(time.Second)
			if !slices.Equal(buf, before) {
				t.Errorf("%s: written after it has returned %v", what, err)
			}
			if err != nil && what != "Sendrecv" {
				t.Errorf("%s of a message that is there: %v", what, err)
			}
		})
	}
}

// A send whose context ends gives its memory back: a receiver that comes later hears that, also this
// process itself, and one that reads just then.
func TestMemory_OfSends(t *testing.T) {
	for _, b := range []struct {
		to   int
		late time.Duration
	}{{0, 5 * time.Second}, {1, 5 * time.Second}, {1, 20 * time.Millisecond}} {
		bubble(t, 2, slow, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			const size = 1 << 20
			if c.Rank() == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
				defer cancel()
				data := pattern(1, size)
				if err := mpi.Send(ctx, c, data, b.to, 0); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("to %d, received after %v: %v", b.to, b.late, err)
				}
				clear(data)
			}
			if c.Rank() == b.to {
				time.Sleep(b.late)
				buf := make([]byte, size)
				if _, err := mpi.Recv(t.Context(), c, buf, 0, 0); !errors.Is(err, mpi.ErrWithdrawn) {
					t.Errorf("to %d, after %v: %v", b.to, b.late, err)
				}
			}
			time.Sleep(10 * time.Second)
		})
	}
}

// The longest message that may be eager is.
func TestMaxEagerLimit(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{EagerLimit: mpi.MaxEagerLimit}, func(t *testing.T, c *mpi.Comm) {
		const size = mpi.MaxEagerLimit
		if c.Rank() == 1 {
			must(t, mpi.Send(t.Context(), c, pattern(3, size), 0, 0))
			if n := c.World().Counters(); n.Eager != 1 || n.Sent != 1 {
				t.Errorf("%+v", n)
			}
			return
		}
		time.Sleep(time.Second)
		buf := make([]byte, size)
		must(t, second(mpi.Recv(t.Context(), c, buf, 1, mpi.AnyTag)))
		if !slices.Equal(buf, pattern(3, size)) {
			t.Error("another message")
		}
	})
}

// An operation whose context ends while others do not take part ends; a send to oneself is none of
// the receives that fail as nobody is left.
func TestContext_OfOperations(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		must(t, mpi.Bcast(ctx, c, make([]byte, 8), 1))
		if c.Rank() == 1 {
			time.Sleep(time.Minute)
			must(t, mpi.Send(ctx, c, []byte{1}, 0, 0))
			must(t, c.World().Close())
			return
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		start := time.Now()
		err := mpi.Bcast(short, c, make([]byte, 100_000), 0) // rank 1 does not take part
		if took := time.Since(start); took > 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, took)
		}
		must(t, second(mpi.Recv(ctx, c, make([]byte, 1), mpi.AnySource, 0)))
		go func() {
			time.Sleep(10 * time.Second)
			must(t, second(mpi.Recv(ctx, c, make([]byte, 1), 0, 5)))
		}()
		must(t, mpi.Ssend(ctx, c, []byte{1}, 0, 5))
	})
}
