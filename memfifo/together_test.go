package memfifo_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

// piped returns two nodes that receive only when they are polled, so that a test decides which
// messages come together.
func piped(t testing.TB) (eps [2]*mcd.Endpoint, domains [2]*memfifo.Domain) {
	return pipedWith(t, mcd.Config{Spin: -1})
}

// pipedWith is piped with a Config of the endpoints.
func pipedWith(t testing.TB, cfg mcd.Config) (eps [2]*mcd.Endpoint, domains [2]*memfifo.Domain) {
	x, y := linktest.Pipe()
	links := [][]transport.Link{{x}, {y}}
	eps = [2]*mcd.Endpoint(mcdtest.OpenLinks(t, mcdtest.Config{Endpoint: cfg}, links...))
	for k, e := range eps {
		d, err := memfifo.Open(e, memfifo.Config{})
		must(t, err)
		domains[k] = d
	}
	return eps, domains
}

// settle polls until no node has anything more to send.
func settle(eps [2]*mcd.Endpoint) {
	for eps[0].Progress() || eps[1].Progress() {
	}
}

// while polls until a function has returned.
func while(eps [2]*mcd.Endpoint, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		settle(eps)
		select {
		case err := <-done:
			return err
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// met is piped after the handshake, with a Remote of the first node on a window of the second.
func met(t *testing.T) (eps [2]*mcd.Endpoint, d [2]*memfifo.Domain, r *memfifo.Remote) {
	eps, d = piped(t)
	w, err := d[1].Register(1, make([]byte, 64), memfifo.All)
	must(t, err)
	r = d[0].Remote(w.Key())
	must(t, r.Signal(t.Context()))
	settle(eps)
	return eps, d, r
}

// A parcel that was acknowledged before the owner left is in place, also if the goodbye comes
// together with the acknowledgement.
func TestTogether_AcknowledgedAndLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, r := met(t)
		parcel := &memfifo.Parcel{To: r, Data: []byte{7}}
		must(t, d[0].Post(parcel))
		for eps[1].Progress() {
		}
		must(t, d[1].Close())
		for eps[0].Progress() {
		}
		must(t, parcel.WaitRemote(context.Background()))
	})
}

// Flush reports no loss if the reply to its fence was the peer's last record.
func TestTogether_FlushedAndLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, _ := met(t)
		flushed := make(chan error)
		go func() { flushed <- d[0].Flush(t.Context()) }()
		synctest.Wait()
		for eps[1].Progress() {
		}
		must(t, d[1].Close())
		for eps[0].Progress() {
		}
		must(t, <-flushed)
	})
}

// Data that a Put receives while it drains is acknowledged soon, also if the Put fails and sends
// nothing.
func TestTogether_ReceivedByAPutThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d := piped(t)
		mine, err := d[0].Register(1, make([]byte, 1<<20), memfifo.All)
		must(t, err)
		w, err := d[1].Register(1, make([]byte, 1<<20), memfifo.All)
		must(t, err)
		must(t, d[1].Remote(mine.Key()).Signal(t.Context()))
		settle(eps)
		r := d[0].Remote(w.Key())
		for range 2 {
			must(t, r.Put(t.Context(), 0, make([]byte, 64<<10)))
			settle(eps)
		}
		must(t, while(eps, d[1].Close))
		d[1], err = memfifo.Open(eps[1], memfifo.Config{})
		must(t, err)
		must(t, d[1].Remote(mine.Key()).Signal(t.Context()))
		settle(eps)
		must(t, d[1].Remote(mine.Key()).Put(t.Context(), 0, make([]byte, 100_000)))
		acks := d[0].Counters().Acks
		if err := r.Put(t.Context(), 0, []byte{1}); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Fatal(err)
		}
		if n := d[0].Counters().Delivered; n < 64 {
			t.Fatalf("it has received %d frames", n)
		}
		time.Sleep(time.Millisecond)
		if d[0].Counters().Acks == acks {
			t.Error("nothing was acknowledged within 1 ms")
		}
	})
}

// More replies than a node keeps for a peer, to requests that come together: the requests wait, and
// all are answered, without a timeout.
func TestTogether_ManyAnswers(t *testing.T) {
	for _, x := range []struct{ calls, size int }{{1000, 8}, {500, 3000}, {200, 100_000}, {70, 300_000}} {
		synctest.Test(t, func(t *testing.T) {
			eps, d := piped(t)
			ctx := limit(t)
			w, err := d[1].Register(1, make([]byte, x.size), memfifo.All)
			must(t, err)
			r := d[0].Remote(w.Key())
			begun := time.Now()
			must(t, while(eps, func() error {
				errs := make([]error, x.calls)
				var all sync.WaitGroup
				for i := range errs {
					all.Go(func() { errs[i] = r.Get(ctx, 0, make([]byte, x.size)) })
				}
				all.Wait()
				return errors.Join(errs...)
			}))
			atOnce(t, begun, d)
		})
	}
}

// Likewise refusals, which no request waits for.
func TestTogether_ManyRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const puts = 20_000
		eps, d := piped(t)
		ctx := limit(t)
		w, err := d[1].Register(1, make([]byte, 8), memfifo.Read)
		must(t, err)
		r := d[0].Remote(w.Key())
		begun := time.Now()
		err = while(eps, func() error {
			for range puts {
				if err := r.Put(ctx, 0, make([]byte, 8)); err != nil {
					return err
				}
			}
			return d[0].Flush(ctx)
		})
		if access, ok := errors.AsType[*memfifo.AccessError](err); !ok || access.Count != puts {
			t.Error(err)
		}
		atOnce(t, begun, d)
	})
}

// atOnce checks that no operation had to wait for a timeout, and no frame was sent twice.
func atOnce(t *testing.T, begun time.Time, domains [2]*memfifo.Domain) {
	t.Helper()
	if took := time.Since(begun); took >= time.Millisecond {
		t.Errorf("it took %v", took)
	}
	for k, d := range domains {
		if c := d.Counters(); c.Retransmitted+c.BeyondWindow > 0 {
			t.Errorf("node %d: %+v", k, c)
		}
	}
}

// What waits for more to share its frame goes before its caller waits for something else.
func TestTogether_ACallerThatWaitsHasNothingCorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, r := met(t)
		settle(eps) // the acknowledgement that the last poll has sent
		own, err := d[0].Register(2, make([]byte, 8), memfifo.All)
		must(t, err)
		before := d[0].Counters().Sent
		for range 4 {
			must(t, r.Put(t.Context(), 0, make([]byte, 8)))
		}
		if n := d[0].Counters().Sent - before; n != 2 {
			t.Fatalf("%d frames were sent at once, want 2", n)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		_, _ = own.Wait(soon, 0)
		if n := d[0].Counters().Sent - before; n < 3 {
			t.Errorf("%d frames were sent, and the caller waits", n)
		}
	})
}

// The records of a PushBatch go at once, in one frame, without any other call.
func TestTogether_ABatchOfPushesGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, _ := met(t)
		settle(eps)
		q, err := d[1].NewFIFO(1, make([]byte, 1024))
		must(t, err)
		before := d[0].Counters().Sent
		must(t, d[0].Remote(q.Key()).PushBatch(t.Context(), []byte("one"), []byte("two"), []byte("three")))
		if n := d[0].Counters().Sent - before; n != 1 {
			t.Errorf("%d frames were sent for three records, want 1", n)
		}
		settle(eps)
		for _, want := range []string{"one", "two", "three"} {
			b := make([]byte, 8)
			if n, ok, err := q.TryPop(b); !ok || err != nil || string(b[:n]) != want {
				t.Errorf("%q, %v, %v; want %q", b[:n], ok, err, want)
			}
		}
	})
}

// A parcel is acknowledged when the poller finds nothing more, not by a timer.
func TestTogether_AcknowledgedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eps, d, r := met(t)
		settle(eps)
		begun := time.Now()
		q := &memfifo.Parcel{To: r, Data: make([]byte, 8)}
		must(t, d[0].Post(q))
		settle(eps)
		settle(eps) // the acknowledgement that the last poll has sent
		must(t, q.WaitRemote(t.Context()))
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// Where both ends send, their acknowledgements travel with data: a round of long puts, one each way,
// takes one that goes alone, behind the last frame.
func TestTogether_AcknowledgementsTravelWithData(t *testing.T) {
	const size, rounds = 64 << 10, 100
	synctest.Test(t, func(t *testing.T) {
		eps, d := piped(t)
		var remotes [2]*memfifo.Remote
		for k := range d {
			w, err := d[k].Register(1, make([]byte, size), memfifo.All)
			must(t, err)
			remotes[1-k] = d[1-k].Remote(w.Key())
		}
		round := func() {
			for _, r := range remotes {
				must(t, r.Put(t.Context(), 0, make([]byte, size)))
			}
			settle(eps)
		}
		alone := func() uint64 { return d[0].Counters().Acks + d[1].Counters().Acks }
		round()
		before := alone()
		for range rounds {
			round()
		}
		if n := alone() - before; n > rounds {
			t.Errorf("%d acknowledgements have gone alone in %d rounds", n, rounds)
		}
	})
}
