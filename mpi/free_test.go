package mpi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// inBoth calls a function for the communicators of two worlds, at once.
func inBoth(t *testing.T, f func(c *Comm) error, worlds ...*World) {
	t.Helper()
	done := make(chan error)
	for _, w := range worlds {
		go func() { done <- f(w.Comm()) }()
	}
	for range worlds {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Nothing is begun in a communicator that was freed, and nothing is left of it: not its place, and
// not the credit of messages that nobody has received.
func TestComm_Free(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx := t.Context()
		inBoth(t, func(c *Comm) error {
			for range 3 {
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				r := Irecv(d, make([]byte, 1), 1-d.Rank(), 1)
				if err := d.Free(ctx); !errors.Is(err, ErrActive) {
					t.Errorf("freed while a receive is active: %v", err)
				}
				if err := c.Barrier(ctx); err != nil { // nothing has come for it yet
					return err
				}
				for range headers / 2 {
					if err := Send(ctx, d, []byte{1}, 1-d.Rank(), 0); err != nil {
						return err
					}
				}
				_, err = Sendrecv(ctx, d, []byte{2}, 1-d.Rank(), 1, make([]byte, 1), ProcNull, 0)
				_, err2 := r.Wait(ctx)
				if err = errors.Join(err, err2, d.Free(ctx)); err != nil {
					return err
				}
				_, agree := d.Agree(ctx, 0)
				_, probe := d.Probe(ctx, AnySource, AnyTag)
				_, receive := Recv(ctx, d, make([]byte, 1), AnySource, AnyTag)
				for k, err := range []error{
					Send(ctx, d, []byte{1}, 1-d.Rank(), 0), receive, probe, agree, d.Barrier(ctx), d.Free(ctx),
				} {
					if !errors.Is(err, ErrFreed) {
						t.Errorf("operation %d of a freed communicator: %v", k, err)
					}
				}
			}
			if err := c.Free(ctx); err == nil {
				t.Error("the world's communicator was freed")
			}
			return c.Barrier(ctx)
		}, w, other)
		if len(w.comms) != 1 || len(other.comms) != 1 {
			t.Errorf("%d and %d communicators are left", len(w.comms), len(other.comms))
		}
		closeTwo(t, w, other)
	})
}

// A communicator that was revoked is freed by each process alone.
func TestComm_FreeOfRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		inBoth(t, func(c *Comm) error {
			d, err := c.Dup(t.Context())
			if err != nil || d.Rank() == 1 {
				return err
			}
			d.Revoke()
			return d.Free(t.Context())
		}, w, other)
		synctest.Wait()
		if len(w.comms) != 1 || len(other.comms) != 2 {
			t.Errorf("%d and %d communicators are left, want 1 and 2", len(w.comms), len(other.comms))
		}
		closeTwo(t, w, other)
	})
}

// Who has asked which processes have failed, and agreed on nothing, keeps nothing of a communicator
// that is freed, however its Free ends.
func TestComm_FreeOfFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		var failed, revoked *Comm
		inBoth(t, func(c *Comm) error {
			d, err := c.Dup(t.Context())
			if err != nil {
				return err
			}
			e, err := c.Dup(t.Context())
			if c.Rank() == 0 {
				failed, revoked = d, e
			}
			return err
		}, w, other)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if err := failed.Barrier(t.Context()); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("a barrier with rank 1, which is down: %v", err)
		}
		for _, d := range []*Comm{failed, revoked} {
			if down, acknowledged := d.Failed(), d.AckFailed(); len(down) != 1 || len(acknowledged) != 1 {
				t.Errorf("down: %v, acknowledged: %v, want rank 1", down, acknowledged)
			}
		}
		if err := failed.Free(t.Context()); !errors.Is(err, ErrProcessFailed) {
			t.Errorf("freed with rank 1, which is down: %v", err)
		}
		revoked.Revoke()
		if err := revoked.Free(t.Context()); err != nil {
			t.Error(err)
		}
		if len(w.comms) != 1 {
			t.Errorf("%d communicators are left, want the world's", len(w.comms))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A process that frees a communicator alone is not down: the others' barrier names it, and all else
// goes on.
func TestComm_FreeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		inBoth(t, func(c *Comm) error {
			d, err := c.Dup(t.Context())
			if err != nil {
				return err
			}
			if c.Rank() == 1 {
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := d.Free(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("freed alone: %v", err)
				}
			} else {
				time.Sleep(2 * time.Second)
				_ = d.Barrier(t.Context()) // rank 1 has entered it
				if err := d.Barrier(t.Context()); !errors.Is(err, ErrFreed) {
					t.Errorf("a barrier without rank 1: %v", err)
				}
			}
			if down := c.Failed(); down != nil {
				t.Errorf("rank %d takes %v for down", c.Rank(), down)
			}
			return c.Barrier(t.Context())
		}, w, other)
		closeTwo(t, w, other)
	})
}
