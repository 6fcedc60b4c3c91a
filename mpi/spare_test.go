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

// Receives that were written into lend their memory until they are waited for. Once all is lent, further
// ones come by other ways, in their order, and nobody is down.
func TestIrecv_MoreThanWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left, batch = 100, 50
		w, other := openTwo(t, Config{OfferFrom: 1})
		w.spare.made = maxWindows - left // all others are lent
		var requests []*Request
		var bufs [][]byte
		for range 4 * left / batch {
			for range batch {
				bufs = append(bufs, make([]byte, 1))
				requests = append(requests, Irecv(w.Comm(), bufs[len(bufs)-1], 1, 0))
			}
			synctest.Wait() // they are offered
			for k := len(bufs) - batch; k < len(bufs); k++ {
				if err := Send(t.Context(), other.Comm(), []byte{byte(k)}, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait() // they are complete
		}
		if err := WaitAll(t.Context(), requests...); err != nil {
			t.Error(err)
		}
		for k, buf := range bufs {
			if buf[0] != byte(k) {
				t.Errorf("message %d is %d", k, buf[0])
			}
		}
		if n := other.stats.Written; n < left/2 || n > left {
			t.Errorf("%d were written, want most of %d", n, left)
		}
		r := Irecv(w.Comm(), make([]byte, 1), 1, 0) // there are windows again
		synctest.Wait()
		before := other.stats.Written
		if err := Send(t.Context(), other.Comm(), []byte{1}, 0, 0); err != nil || other.stats.Written == before {
			t.Errorf("%v, %+v", err, other.stats)
		}
		if _, err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		closeTwo(t, w, other)
	})
}
