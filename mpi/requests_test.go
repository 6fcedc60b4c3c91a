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

// Each request is returned once, as it becomes complete.
func TestWaitAny(t *testing.T) {
	bubble(t, 4, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() > 0 {
			time.Sleep(time.Duration(4-c.Rank()) * time.Second)
			must(t, mpi.Send(ctx, c, []int{c.Rank()}, 0, 0))
			return
		}
		bufs := make([][]int, 3)
		var requests []*mpi.Request
		for k := range bufs {
			bufs[k] = make([]int, 1)
			requests = append(requests, mpi.Irecv(c, bufs[k], k+1, 0))
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		if k, _, err := mpi.WaitAny(short, requests...); k != -1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("request %d, %v", k, err)
		}
		cancel()
		for _, want := range []int{2, 1, 0} {
			k, s, err := mpi.WaitAny(ctx, requests...)
			must(t, err)
			if k != want || s.Source != want+1 || bufs[k][0] != want+1 {
				t.Errorf("request %d, %+v, want %d", k, s, want)
			}
		}
		if k, _, err := mpi.WaitAny(ctx, requests...); k != -1 || err != nil {
			t.Errorf("request %d, %v, of none", k, err)
		}
		must(t, mpi.WaitAll(ctx, requests...))
	})
}

func TestWaitSome(t *testing.T) {
	bubble(t, 4, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() > 0 {
			time.Sleep(time.Duration(c.Rank()/2) * time.Second)
			must(t, mpi.Send(ctx, c, make([]int, c.Rank()), 0, 0))
			return
		}
		var requests []*mpi.Request
		for k := range 3 {
			requests = append(requests, mpi.Irecv(c, make([]int, 2), k+1, 0))
		}
		places, err := mpi.WaitSome(ctx, requests...)
		must(t, err)
		if !slices.Equal(places, []int{0}) {
			t.Errorf("%v at first", places)
		}
		time.Sleep(2 * time.Second)
		places, err = mpi.WaitSome(ctx, requests...)
		if slices.Sort(places); !slices.Equal(places, []int{1, 2}) || !errors.Is(err, mpi.ErrTruncate) {
			t.Errorf("%v then, %v", places, err)
		}
		if places, err := mpi.WaitSome(ctx, requests...); places != nil || err != nil {
			t.Errorf("%v of none, %v", places, err)
		}
		if err := mpi.WaitAll(ctx, requests...); !errors.Is(err, mpi.ErrTruncate) {
			t.Errorf("%v", err)
		}
	})
}

// A persistent operation is begun again and again, with what its memory has then.
func TestPersistent(t *testing.T) {
	for _, count := range []int{1, 10_000} {
		bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			buf := make([]int, count)
			p := mpi.RecvInit(c, buf, 0, 0)
			if c.Rank() == 0 {
				p = mpi.SendInit(c, buf, 1, 0)
			}
			for k := range 10 {
				must(t, c.Barrier(t.Context()))
				if c.Rank() == 0 {
					time.Sleep(time.Second) // the receive is active until then
					copy(buf, sequence(k, count))
				}
				must(t, p.Start())
				if c.Rank() == 1 && !errors.Is(p.Start(), mpi.ErrActive) {
					t.Error("an active request is started")
				}
				_, err := p.Wait(t.Context())
				must(t, err)
				if !slices.Equal(buf, sequence(k, count)) {
					t.Errorf("%v, want %d", buf[0], k)
				}
			}
		})
	}
}

// Requests that are nil, and operations that were not started, are none to wait for: wherever they
// are in a list, and however often it is waited for.
func TestRequests_Null(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() == 1 {
			time.Sleep(time.Second)
			must(t, mpi.Send(ctx, c, []int{42}, 0, 0))
			return
		}
		var null *mpi.Request
		buf, unstarted := []int{0}, mpi.RecvInit(c, []int{0}, 1, 1)
		s, done, err := null.Test()
		if waited, err2 := null.Wait(ctx); err != nil || err2 != nil || !done || waited != s || s.Source != mpi.AnySource {
			t.Errorf("%v, %v, %v: %+v, %+v", err, err2, done, s, waited)
		}
		null.Cancel()
		var begun mpi.Request // with nothing
		if s, done, err := begun.Test(); !done || err != nil || s.Source != mpi.AnySource {
			t.Errorf("begun with nothing: %+v, %v, %v", s, done, err)
		}
		list := []*mpi.Request{null, &unstarted.Request, mpi.Irecv(c, buf, 1, 0), null, &begun}
		k, s, err := mpi.WaitAny(ctx, list...)
		if err != nil || k != 2 || s.Source != 1 || buf[0] != 42 {
			t.Errorf("request %d, %+v, %v", k, s, err)
		}
		if k, _, err := mpi.WaitAny(ctx, list...); k != -1 || err != nil {
			t.Errorf("request %d, %v, of none", k, err)
		}
		if places, err := mpi.WaitSome(ctx, list...); places != nil || err != nil {
			t.Errorf("%v, %v, of none", places, err)
		}
		must(t, mpi.WaitAll(ctx, list...))
	})
}

// A persistent send is one of the standard mode: a short one is complete before its receive is there.
func TestPersistent_Standard(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 1 {
			time.Sleep(time.Second)
			must(t, second(mpi.Recv(t.Context(), c, make([]byte, 1), 0, 0)))
			return
		}
		begun := time.Now()
		p := mpi.SendInit(c, []byte{1}, 1, 0)
		must(t, p.Start())
		if _, err := p.Wait(t.Context()); err != nil || time.Since(begun) >= time.Second {
			t.Errorf("%v, after %v", err, time.Since(begun))
		}
	})
}

// A buffered send ends before its receive is there, and its data may be changed.
func TestBsend(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		buf := sequence(0, 10_000)
		if c.Rank() == 0 {
			must(t, mpi.Bsend(c, buf, 1, 0))
			clear(buf)
			if err := mpi.Bsend(c, buf, 2, 0); !errors.Is(err, mpi.ErrRank) {
				t.Errorf("%v", err)
			}
			must(t, mpi.Rsend(t.Context(), c, buf, 1, 1))
			return
		}
		clear(buf)
		time.Sleep(time.Second)
		_, err := mpi.Recv(t.Context(), c, buf, 0, 0)
		must(t, err)
		if !slices.Equal(buf, sequence(0, 10_000)) {
			t.Error("another message")
		}
		_, err = mpi.Recv(t.Context(), c, buf, 0, 1)
		must(t, err)
	})
}

// An operation that was not started is complete, with an empty status.
func TestPersistent_NotStarted(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		p := mpi.SendInit(c, []byte{1}, 0, 0)
		p.Cancel()
		if s, done, err := p.Test(); !done || err != nil || s.Source != mpi.AnySource {
			t.Errorf("%+v, %v, %v", s, done, err)
		}
		must(t, mpi.WaitAll(t.Context(), &p.Request))
	})
}

// Long messages whose send or receive had to wait come whole: for credit, until there is an offer; for
// credit, and are asked for; and those whose receive waited to be offered.
func TestSend_LongThatWaited(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, long := t.Context(), sequence(3, 20_000)
		if c.Rank() == 0 {
			var requests []*mpi.Request
			for k := range 2000 { // more than there is credit for
				requests = append(requests, mpi.Isend(c, []int{k}, 1, 0))
			}
			requests = append(requests, mpi.Isend(c, long, 1, 1), mpi.Isend(c, long, 1, 2))
			must(t, mpi.WaitAll(ctx, requests...))
			time.Sleep(time.Second)
			must(t, mpi.Send(ctx, c, []int{7}, 1, 3))
			time.Sleep(time.Second)
			must(t, mpi.Send(ctx, c, long, 1, 3))
			got := c.World().Counters()
			bytes := uint64(8 * len(long))
			want := mpi.Counters{
				Sent: 2004, Eager: 2001, Written: 2, Requested: 1,
				SentBytes: 3*bytes + 8*2001, WrittenBytes: 2 * bytes, RequestedBytes: bytes, Frames: got.Frames,
			}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			return
		}
		time.Sleep(time.Second)
		buf := make([]int, len(long))
		for _, r := range []struct{ from, tag int }{{0, 1}, {mpi.AnySource, 2}} {
			clear(buf)
			must(t, second(mpi.Recv(ctx, c, buf, r.from, r.tag)))
			if !slices.Equal(buf, long) {
				t.Errorf("tag %d: another message", r.tag)
			}
		}
		first := make([]int, 1)
		before, after := mpi.Irecv(c, first, mpi.AnySource, 3), mpi.Irecv(c, buf, 0, 3)
		for range 2000 {
			must(t, second(mpi.Recv(ctx, c, make([]int, 1), 0, 0)))
		}
		clear(buf)
		must(t, mpi.WaitAll(ctx, before, after))
		if first[0] != 7 || !slices.Equal(buf, long) {
			t.Errorf("%v first, and another message", first)
		}
	})
}

// WaitAny returns a persistent operation once for each Start.
func TestWaitAny_Persistent(t *testing.T) {
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		p := mpi.RecvInit(c, make([]byte, 1), 0, 0)
		for k := range 2 {
			must(t, p.Start())
			must(t, mpi.Send(t.Context(), c, []byte{1}, 0, 0))
			for _, want := range []int{0, -1} {
				if got, _, err := mpi.WaitAny(t.Context(), &p.Request); got != want || err != nil {
					t.Errorf("start %d: %d, want %d: %v", k, got, want, err)
				}
			}
			must(t, p.Start())
			must(t, mpi.Send(t.Context(), c, []byte{1}, 0, 0))
			if k == 0 {
				_, err := p.Wait(t.Context())
				must(t, err)
			} else {
				for done := false; !done; _, done, _ = p.Test() {
				}
			}
			if got, _, err := mpi.WaitAny(t.Context(), &p.Request); got != -1 || err != nil {
				t.Errorf("waited for, %d: %d, %v", k, got, err)
			}
		}
	})
}

// A persistent operation whose outcome was returned is as one that was not started: it is not told
// again, also not how it has failed.
func TestPersistent_OutcomeOnce(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() == 1 {
			for range 3 {
				must(t, mpi.Send(ctx, c, []int{1, 2, 3}, 0, 1))
			}
			return
		}
		p := mpi.RecvInit(c, make([]int, 1), 1, 1)
		for _, wait := range []func() error{
			func() error { return second(p.Wait(ctx)) },
			func() error { return mpi.WaitAll(ctx, &p.Request) },
			func() error { _, _, err := mpi.WaitAny(ctx, &p.Request); return err },
		} {
			must(t, p.Start())
			if err := wait(); !errors.Is(err, mpi.ErrTruncate) {
				t.Errorf("%v", err)
			}
			s, err := p.Wait(ctx)
			if err != nil || s.Source != mpi.AnySource || s.Tag != mpi.AnyTag || s.Bytes() != 0 {
				t.Errorf("a second Wait: %+v, %v", s, err)
			}
			if s, done, err := p.Test(); err != nil || !done || s.Source != mpi.AnySource {
				t.Errorf("a Test behind it: %+v, %v, %v", s, done, err)
			}
			must(t, mpi.WaitAll(ctx, &p.Request))
		}
	})
}

// What is refused has no status of a message, and of no communicator there is nothing to free.
func TestRefused_HasNoStatus(t *testing.T) {
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		for _, from := range []int{2, -3, mpi.ProcNull} {
			tag, want := 0, mpi.ErrRank
			if from == mpi.ProcNull {
				tag, want = -7, mpi.ErrTag
			}
			s, err := mpi.Recv(ctx, c, []int{1}, from, tag)
			if !errors.Is(err, want) || s.Source != mpi.AnySource || s.Tag != mpi.AnyTag {
				t.Errorf("from %d: %+v, %v", from, s, err)
			}
		}
		d, err := c.Split(ctx, mpi.NoColor, 0)
		must(t, err)
		must(t, d.Free(ctx))
	})
}
