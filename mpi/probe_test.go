package mpi_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
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

// Of a message that was taken before its sender went, a short one is received; the bytes of a long
// one are gone, which its receive says at once, and names the process, also if that has begun anew.
func TestMRecv_OfAProcessThatIsDown(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			eps := mcdtest.Open(t, 2, mcdtest.Config{Endpoint: mcd.Config{Spin: -1}})
			worlds := openAll(t, eps, mpi.Config{})
			stays, leaves := worlds[0].Comm(), worlds[1].Comm()
			mpi.Isend(leaves, []byte{7}, 0, 1)
			mpi.Isend(leaves, make([]byte, 100_000), 0, 2)
			short, err := stays.Mprobe(t.Context(), 1, 1)
			must(t, err)
			long, err := stays.Mprobe(t.Context(), 1, 2)
			must(t, err)
			must(t, worlds[1].Close())
			if again {
				worlds[1], err = mpi.Open(eps[1], mpi.Config{})
				must(t, err)
			}
			time.Sleep(time.Second)
			buf := make([]byte, 100_000)
			if _, err := mpi.MRecv(t.Context(), short, buf); err != nil || buf[0] != 7 {
				t.Errorf("%d, %v", buf[0], err)
			}
			start := time.Now()
			_, err = mpi.MRecv(t.Context(), long, buf)
			if down, ok := errors.AsType[*mpi.ProcessError](err); !ok || down.Rank != 1 || time.Since(start) > 0 {
				t.Errorf("begun anew %v: %v after %v", again, err, time.Since(start))
			}
			closeAll(worlds)
		})
	}
}
