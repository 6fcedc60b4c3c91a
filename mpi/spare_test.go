package mpi

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
)

// A process without a window to lend tells all that there is none, and is not down.
func TestNewWin_WithoutAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		other.spare.made = maxLent
		inBoth(t, func(c *Comm) error {
			if _, err := NewWin(t.Context(), c, make([]int, 1)); !errors.Is(err, ErrWindows) {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
			return c.Barrier(t.Context())
		}, w, other)
		closeTwo(t, w, other)
	})
}

// A long message for which nothing is left to lend fails, at either end, and takes nobody for down:
// those before it and behind it arrive.
func TestSend_WithoutAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := openTwo(t, Config{})
		ctx, long := t.Context(), bytes.Repeat([]byte("long"), 1<<16)
		var sends []*Request
		for k := range 3 {
			if k == 1 {
				w.spare.made = maxLent
			}
			sends = append(sends, Isend(w.Comm(), long, 1, k))
			synctest.Wait()
		}
		sends = append(sends, Isend(w.Comm(), []byte("short"), 1, 3))
		for k, want := range []error{nil, ErrWithdrawn, ErrWithdrawn, nil} {
			buf := make([]byte, len(long))
			s, err := Recv(ctx, other.Comm(), buf, 0, AnyTag)
			if !errors.Is(err, want) || err == nil && (s.Tag != k || k == 0 && !bytes.Equal(buf, long)) {
				t.Errorf("received %d: %+v, %v; want %v", k, s, err, want)
			}
		}
		for k, want := range []error{nil, ErrWindows, ErrWindows, nil} {
			if _, err := sends[k].Wait(ctx); !errors.Is(err, want) {
				t.Errorf("sent %d: %v, want %v", k, err, want)
			}
		}
		r := Irecv(w.Comm(), make([]byte, len(long)), 1, 0) // is offered all the same
		synctest.Wait()
		if err := Send(ctx, other.Comm(), long, 0, 0); err != nil || other.stats.Written != 1 {
			t.Errorf("%v, %+v", err, other.stats)
		}
		if _, err := r.Wait(ctx); err != nil {
			t.Error(err)
		}
		closeTwo(t, w, other)
	})
}
