package memfifo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// bad is the worst that links do to frames.
var bad = fault.Config{Loss: 0.2, Duplicate: 0.2, Reorder: 0.3, Delay: 0.1, DelayMax: 5 * time.Millisecond, Corrupt: 0.02}

// A completion is checked in the moment in which it is signalled: the bytes are in place.
func TestCompletion_IsInPlaceAtOnce(t *testing.T) {
	seed := rand.Uint64()
	for name, complete := range map[string]func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, w *memfifo.Window, data []byte) error{
		"Put and Flush": func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, _ *memfifo.Window, data []byte) error {
			return errors.Join(r.Put(ctx, 16, data), d.Flush(ctx))
		},
		"Put and Flush of one node": func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, _ *memfifo.Window, data []byte) error {
			return errors.Join(r.Put(ctx, 16, data), d.Flush(ctx, 1))
		},
		"Put and FetchAdd": func(ctx context.Context, r *memfifo.Remote, _ *memfifo.Domain, _ *memfifo.Window, data []byte) error {
			err := r.Put(ctx, 16, data)
			_, err2 := r.FetchAdd(ctx, 0, 1)
			return errors.Join(err, err2)
		},
		"PutNotify and Wait": func(ctx context.Context, r *memfifo.Remote, _ *memfifo.Domain, w *memfifo.Window, data []byte) error {
			seen := w.Notified()
			err := r.PutNotify(ctx, 16, data)
			n, err2 := w.Wait(ctx, seen)
			if n != seen+1 {
				err = errors.New("one notification was to come")
			}
			return errors.Join(err, err2)
		},
		"Put, Signal and Wait": func(ctx context.Context, r *memfifo.Remote, _ *memfifo.Domain, w *memfifo.Window, data []byte) error {
			seen := w.Notified()
			err := errors.Join(r.Put(ctx, 16, data), r.Signal(ctx))
			_, err2 := w.Wait(ctx, seen)
			return errors.Join(err, err2)
		},
		"PutV and WaitWord": func(ctx context.Context, r *memfifo.Remote, _ *memfifo.Domain, w *memfifo.Window, data []byte) error {
			flag := binary.NativeEndian.AppendUint64(nil, uint64(1+data[0]))
			_ = w.Store(8, 0)
			err := r.PutV(ctx, memfifo.Segment{Off: 16, Data: data[:50]}, memfifo.Segment{Off: 66, Data: data[50:]}, memfifo.Segment{Off: 8, Data: flag})
			_, err2 := w.WaitWord(ctx, 8, func(v uint64) bool { return v == uint64(1+data[0]) })
			return errors.Join(err, err2)
		},
		"Post and WaitRemote": func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, _ *memfifo.Window, data []byte) error {
			q := &memfifo.Parcel{To: r, Off: 16, Data: data}
			return errors.Join(d.Post(q), q.WaitRemote(ctx))
		},
		"Post and Flush": func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, _ *memfifo.Window, data []byte) error {
			return errors.Join(d.Post(&memfifo.Parcel{To: r, Off: 16, Data: data}), d.Flush(ctx))
		},
		"Post OnLast and Wait": func(ctx context.Context, r *memfifo.Remote, d *memfifo.Domain, w *memfifo.Window, data []byte) error {
			seen := w.Notified()
			err := d.Post(&memfifo.Parcel{To: r, Off: 16, Data: data, Notify: memfifo.OnLast})
			_, err2 := w.Wait(ctx, seen)
			return errors.Join(err, err2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, ctx, w, r := twoNodes(t, bad, seed, 16+100_000)
				for i, size := range []int{100, 1, 100, 1440, 1441, 10_000, 100_000} {
					data := bytes.Repeat([]byte{byte(1 + i)}, max(size, 51))
					must(t, complete(ctx, r, c.domains[0], w, data))
					if !bytes.Equal(w.Bytes()[16:][:len(data)], data) {
						t.Fatalf("%d bytes are not in place; seed %d", size, seed)
					}
				}
			})
		})
	}
}

// When the notification on the first frame comes, its bytes are there, and the others may not be.
func TestCompletion_OnFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, bad, 9, 1<<20)
		early := false
		for i := range uint64(20) {
			q := &memfifo.Parcel{To: r, Data: bytes.Repeat([]byte{byte(1 + i)}, 1<<20), Notify: memfifo.OnFirst}
			must(t, c.domains[0].Post(q))
			n, err := w.Wait(ctx, i)
			must(t, err)
			own := c.domains[1].Remote(w.Key()) // the rest is on its way: a Get from oneself is in order with it
			var first, last [8]byte
			must(t, own.Get(ctx, 0, first[:]))
			must(t, own.Get(ctx, 1<<20-8, last[:]))
			if n != i+1 || first[0] != byte(1+i) {
				t.Errorf("%d notifications, the first byte is %d, not %d", n, first[0], 1+i)
			}
			early = early || last[0] != byte(1+i)
			must(t, q.WaitRemote(ctx))
		}
		if !early {
			t.Error("the notification was never early")
		}
	})
}

// A record comes behind the Puts that one goroutine did before it on the same node.
func TestCompletion_PutThenPush(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, bad, seed, 100*5000)
		q := c.fifo(t, 1, 512)
		var putting sync.WaitGroup
		putting.Go(func() {
			for i := range 100 {
				data := bytes.Repeat([]byte{byte(1 + i)}, 1+i*49)
				put := r.Put(ctx, int64(5000*i), data)
				if i%3 == 0 {
					put = c.domains[0].Post(&memfifo.Parcel{To: r, Off: int64(5000 * i), Data: data})
				}
				if err := errors.Join(put, c.domains[0].Remote(q.Key()).Push(ctx, stamped(0, i, 8))); err != nil {
					t.Error(err)
				}
			}
		})
		b := make([]byte, 8)
		for i := range 100 {
			_, err := q.Pop(ctx, b)
			must(t, err)
			if got := w.Bytes()[5000*i:][:1+i*49]; !bytes.Equal(got, bytes.Repeat([]byte{byte(1 + i)}, 1+i*49)) {
				t.Errorf("record %d came before what was put before it; seed %d", i, seed)
			}
		}
		putting.Wait()
	})
}

// Revoke ends waits, replies under way, and writes: nothing touches the memory after it.
func TestCompletion_Revoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, ctx, w, r := twoNodes(t, slow, 0, 8<<20)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := w.Wait(ctx, 0); !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("Wait: %v", err)
			}
		})
		waiting.Go(func() { // its answer is longer than what may be under way at a time
			err := r.Get(ctx, 0, make([]byte, 8<<20))
			if access, ok := errors.AsType[*memfifo.AccessError](err); !ok || access.Reason != memfifo.NoSuchID {
				t.Errorf("Get: %v", err)
			}
		})
		waiting.Go(func() {
			err := errors.Join(r.Put(ctx, 0, bytes.Repeat([]byte{1}, 8<<20)), c.domains[0].Flush(ctx))
			if !errors.Is(err, memfifo.ErrAccess) {
				t.Errorf("Put: %v", err)
			}
		})
		time.Sleep(2 * time.Second)
		w.Revoke()
		w.Revoke()
		if w.Bytes()[0] != 1 {
			t.Error("the Put was to have begun")
		}
		before := bytes.Clone(w.Bytes())
		waiting.Wait()
		if !bytes.Equal(before, w.Bytes()) {
			t.Error("written after Revoke")
		}
		again, err := c.domains[1].Register(1, w.Bytes(), memfifo.All)
		must(t, err)
		if again.Key() == w.Key() {
			t.Error("two windows of one key")
		}
	})
}

// What a batch of frames brings is acknowledged behind it, and not when the delay of acknowledgements
// is over: on links without delay, no time passes. That is so, too, where both ends have sent much.
func TestCompletion_IsToldBehindTheBatch(t *testing.T) {
	const long = 128 << 10
	synctest.Test(t, func(t *testing.T) {
		c, ctx, _, r := twoNodes(t, fault.Config{}, 0, long)
		back := c.domains[1].Remote(c.window(t, 0, long).Key())
		for range 3 {
			must(t, back.Put(ctx, 0, make([]byte, long)))
			must(t, r.Put(ctx, 0, make([]byte, long)))
			must(t, errors.Join(c.domains[0].Flush(ctx), c.domains[1].Flush(ctx)))
		}
		synctest.Wait()
		began := time.Now()
		for i := range 10 {
			q := &memfifo.Parcel{To: r, Data: []byte{byte(i)}}
			must(t, c.domains[0].Post(q))
			must(t, q.WaitRemote(ctx))
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("10 parcels, one after the other, have taken %v", d)
		}
	})
}
