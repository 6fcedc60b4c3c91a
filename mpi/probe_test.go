package mpi_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A probe finds what a receive would take, and changes nothing, or takes it for one receive.
func TestProbe(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() == 1 {
			time.Sleep(time.Second)
			for tag, size := range []int{3, 100_000} {
				must(t, mpi.Send(ctx, c, pattern(tag, size), 0, tag))
			}
			must(t, mpi.Send(ctx, c, []byte{1}, 0, 7))
			return
		}
		if _, found, err := c.Iprobe(1, mpi.AnyTag); found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		s, err := c.Probe(ctx, mpi.AnySource, 0)
		must(t, err)
		if s.Bytes() != 3 || s.Source != 1 {
			t.Errorf("%+v", s)
		}
		long, err := c.Mprobe(ctx, 1, 1)
		must(t, err)
		if _, found, err := c.Iprobe(1, 1); found || err != nil {
			t.Error("a message is found that was taken")
		}
		buf := make([]byte, 100_000)
		s, err = mpi.MRecv(ctx, long, buf)
		must(t, err)
		if s.Bytes() != 100_000 || !slices.Equal(buf, pattern(1, 100_000)) {
			t.Errorf("%+v", s)
		}
		if _, err := mpi.MRecv(ctx, long, buf); !errors.Is(err, mpi.ErrReceived) {
			t.Errorf("%v", err)
		}
		if s, err = mpi.Recv(ctx, c, buf, 1, mpi.AnyTag); err != nil || s.Tag != 0 {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err = mpi.Recv(ctx, c, buf, 1, 7); err != nil {
			t.Error(err)
		}
	})
}

// A probe of a rank or a tag that there is not is refused, in whichever way.
func TestProbe_Errors(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		for _, b := range []struct {
			from, tag int
			want      error
		}{{1, 0, mpi.ErrRank}, {-3, mpi.AnyTag, mpi.ErrRank}, {mpi.ProcNull, -2, mpi.ErrTag}, {0, -2, mpi.ErrTag}, {mpi.AnySource, -2, mpi.ErrTag}} {
			_, found, once := c.Iprobe(b.from, b.tag)
			_, waits := c.Probe(t.Context(), b.from, b.tag)
			_, takes := c.Mprobe(t.Context(), b.from, b.tag)
			for _, err := range []error{once, waits, takes} {
				if found || !errors.Is(err, b.want) {
					t.Errorf("rank %d, tag %d: %v, want %v", b.from, b.tag, err, b.want)
				}
			}
		}
	})
}

// Of nobody there is always a message, of no bytes, which is received any number of times.
func TestProbe_ProcNull(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		want, err := mpi.Recv(ctx, c, []int{}, mpi.ProcNull, 3)
		must(t, err)
		if want.Source != mpi.ProcNull || want.Tag != mpi.AnyTag || want.Bytes() != 0 {
			t.Errorf("received %+v", want)
		}
		s, found, err := c.Iprobe(mpi.ProcNull, 3)
		must(t, err)
		waited, err := c.Probe(ctx, mpi.ProcNull, 3)
		must(t, err)
		if !found || s != want || waited != want {
			t.Errorf("%v: %+v, %+v; want %+v", found, s, waited, want)
		}
		m, err := c.Mprobe(ctx, mpi.ProcNull, 3)
		must(t, err)
		for range 2 {
			if s, err := mpi.MRecv(ctx, m, []int{}); s != want || err != nil {
				t.Errorf("%+v, %v; want %+v", s, err, want)
			}
		}
	})
}
