package memfifo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Expect of a node that was down gives it another chance, whoever else expects it: the owner may
// know that it is back. If it is not, that is found out again.
func TestExpect_OfOneThatWasDown(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, fault.Config{}, 0)
			ctx := limit(t)
			q, w := c.fifo(t, 0, 1<<10), c.window(t, 0, 64)
			must(t, q.Expect(1))
			must(t, w.Expect(1))
			c.faults[1].Cut(true)
			_, err := q.Pop(ctx, nil)
			downs(t, err)
			if back {
				c.faults[1].Cut(false)
			}
			must(t, q.Expect(1))
			if n := len(q.Down()) + len(w.Down()); n > 0 {
				t.Errorf("back %t: expected anew, and %d are down", back, n)
			}
			short, cancel := context.WithTimeout(ctx, 3*memfifo.DefaultPeerTimeout)
			defer cancel()
			if _, err = q.Pop(short, nil); back != errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("back %t: %v", back, err)
			}
			if n := len(q.Down()) + len(w.Down()); back != (n == 0) {
				t.Errorf("back %t: then %d are down", back, n)
			}
		})
	}
}

// The owner of a window restarts in the middle of a parcel. The parcel ends with that, those behind
// it too, Flush tells it once, and nothing of it is in the new window, which has the same id.
func TestRestart_InTheMiddleOfAParcel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 1<<20)
		d := c.domains[0]
		must(t, r.Signal(ctx))
		must(t, d.Flush(ctx))
		c.faults[1].Cut(true)
		parcels := []*memfifo.Parcel{{To: r, Data: bytes.Repeat([]byte{7}, 1<<20)}, {To: r, Data: []byte{8}}}
		must(t, d.Post(parcels...))
		if parcels[0].Done() {
			t.Fatal("a megabyte fits a window")
		}
		must(t, c.domains[1].Close())
		c.faults[1].Cut(false)
		c.reopen(t, 1)
		w := c.window(t, 1, 1<<20)
		must(t, c.domains[1].Remote(c.window(t, 0, 64).Key()).Signal(ctx)) // it is heard
		for i, q := range parcels {
			for _, err := range []error{q.Wait(ctx), q.WaitRemote(ctx)} {
				if !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("parcel %d: %v", i, err)
				}
			}
		}
		if err := d.Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("Flush: %v", err)
		}
		must(t, d.Flush(ctx))
		must(t, r.Put(ctx, 0, []byte{9})) // by the old key
		if err := d.Flush(ctx); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("by the key of a former window: %v", err)
		}
		parcels[0].To = d.Remote(w.Key())
		must(t, d.Post(parcels[0]))
		must(t, parcels[0].WaitRemote(ctx))
		if !bytes.Equal(w.Bytes(), parcels[0].Data) {
			t.Error("posted again, it is not in place")
		}
	})
}

// A window is revoked while a Get of it streams, and its id is taken by another one at once: the Get
// ends with a refusal, and has no byte of the new window.
func TestRevoke_WhileAGetStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 << 20
		eps, d := piped(t)
		w, err := d[1].Register(1, make([]byte, size), memfifo.All)
		must(t, err)
		r := d[0].Remote(w.Key())
		must(t, r.Signal(t.Context()))
		settle(eps)
		got, mem := make([]byte, size), bytes.Repeat([]byte{7}, size)
		ended := make(chan error, 1)
		go func() { ended <- r.Get(t.Context(), 0, got) }()
		synctest.Wait()
		for eps[1].Progress() {
		}
		if n := d[1].Counters().Sent; n < 10 || n*1500 > size {
			t.Fatalf("%d frames of the reply were sent", n)
		}
		w.Revoke()
		next, err := d[1].Register(w.Key().ID, mem, memfifo.All)
		must(t, err)
		if err := while(eps, func() error { return <-ended }); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("of a window that was revoked: %v", err)
		}
		if bytes.IndexByte(got, 7) >= 0 {
			t.Error("bytes of another window")
		}
		if err := while(eps, func() error { return r.Get(t.Context(), 0, got[:8]) }); !errors.Is(err, memfifo.ErrAccess) {
			t.Errorf("by the former key: %v", err)
		}
		must(t, while(eps, func() error { return d[0].Remote(next.Key()).Get(t.Context(), 0, got) }))
		if !bytes.Equal(got, mem) {
			t.Error("the new window's bytes differ")
		}
	})
}

// Close during a Flush whose peer does not answer ends both, and each says why.
func TestClose_DuringAFlush(t *testing.T) {
	for _, answers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, ctx, _, r := twoNodes(t, fault.Config{}, 0, 64)
			must(t, r.Signal(ctx))
			must(t, c.domains[0].Flush(ctx))
			c.faults[1].Cut(true)
			must(t, r.Put(ctx, 0, []byte{1}))
			flushed, closed := make(chan error, 2), make(chan error, 1)
			for range cap(flushed) {
				go func() { flushed <- c.domains[0].Flush(ctx) }()
			}
			synctest.Wait()
			go func() { closed <- c.domains[0].Close() }()
			synctest.Wait()
			if answers {
				c.faults[1].Cut(false)
			}
			for name, end := range map[string]chan error{"Flush": flushed, "Close": closed} {
				for range cap(end) {
					if err := <-end; answers != (err == nil) || err != nil && !errors.Is(err, memfifo.ErrPeerDown) {
						t.Errorf("answers %t: %s: %v", answers, name, err)
					}
				}
			}
		})
	}
}

// 2,048 callers in Put while the owner goes away: each call ends, and tells a loss or leaves it to
// Flush. Behind Flush all goes on, and each word is that of its caller's last call.
func TestPut_ThousandsOfCallersAndARestart(t *testing.T) {
	callers := enough(2048, 256)
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, fault.Config{}, 0, 8*callers)
		var calls sync.WaitGroup
		put := func(v uint64) (lost int) {
			var mu sync.Mutex
			for i := range callers {
				calls.Go(func() {
					var b [8]byte
					binary.NativeEndian.PutUint64(b[:], v+uint64(i))
					for range 2 {
						err := r.Put(ctx, int64(8*i), b[:])
						if err != nil && !errors.Is(err, memfifo.ErrPeerDown) {
							t.Errorf("caller %d: %v", i, err)
						}
						if err != nil {
							mu.Lock()
							lost++
							mu.Unlock()
						}
					}
				})
			}
			calls.Wait()
			return lost
		}
		if lost := put(0); lost > 0 {
			t.Errorf("%d calls of %d have failed", lost, 2*callers)
		}
		must(t, c.domains[0].Flush(ctx))
		for i := range callers {
			if v, err := w.Load(int64(8 * i)); err != nil || v != uint64(i) {
				t.Fatalf("word %d is %d, %v", i, v, err)
			}
		}
		c.faults[1].Cut(true)
		time.AfterFunc(time.Millisecond, func() { _ = c.domains[1].Close() })
		lost := put(1 << 20)
		if err := c.domains[0].Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%d calls have failed, and Flush says %v", lost, err)
		}
		c.faults[1].Cut(false)
		c.reopen(t, 1)
		w = c.window(t, 1, 8*callers)
		r = c.domains[0].Remote(w.Key())
		if put(1<<30) > 0 {
			t.Error("calls to the new owner have failed")
		}
		must(t, c.domains[0].Flush(ctx))
		for i := range callers {
			if v, _ := w.Load(int64(8 * i)); v != 1<<30+uint64(i) {
				t.Fatalf("word %d is %d", i, v)
			}
		}
	})
}
