package memfifo_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// farther is a link on which a window of frames takes a while.
var farther = fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}

// A node whose goroutines always have parcels in the send queue starves none of its other
// operations on that peer; nor do these starve the parcels.
func TestOrder_ParcelsAndCallersStarveNeither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, farther, 0)
		ctx, stop := context.WithCancel(limit(t))
		d := c.domains[0]
		w := c.window(t, 1, 1<<20)
		q := c.fifo(t, 1, 1<<20)
		r, push := d.Remote(w.Key()), d.Remote(q.Key())
		done := map[string]int{}
		var mu sync.Mutex
		var working sync.WaitGroup
		work := func(name string, do func() error) {
			working.Go(func() {
				for ctx.Err() == nil {
					if err := do(); err != nil && ctx.Err() == nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					mu.Lock()
					done[name]++
					mu.Unlock()
				}
			})
		}
		for i := range 3 { // there is always one that is posted, and not in frames
			work("parcel", func() error {
				p := &memfifo.Parcel{To: r, Off: int64(8 * i), Data: make([]byte, 400_000)}
				return errors.Join(d.Post(p), p.Wait(ctx))
			})
		}
		work("Put", func() error { return r.Put(ctx, 0, []byte{1}) })
		work("a long Put", func() error { return r.Put(ctx, 0, make([]byte, 900_000)) })
		work("PutV", func() error {
			return r.PutV(ctx, memfifo.Segment{Data: []byte{1}}, memfifo.Segment{Data: make([]byte, 3000)})
		})
		work("PostPut", func() error {
			sent := make(chan error, 1)
			q := new(heard).put(r, 0, make([]byte, 900_000), push, string(make([]byte, 100)))
			q.Sent = func(err error) *memfifo.PostedPut { sent <- err; return nil }
			if err := d.PostPut(q); err != nil {
				return err
			}
			return <-sent
		})
		work("FetchAdd", func() error { _, err := r.FetchAdd(ctx, 0, 1); return err })
		work("Flush", func() error { return d.Flush(ctx) })
		for range 2 {
			work("Push", func() error { return push.Push(ctx, make([]byte, 100)) })
			work("a long Push", func() error { return push.Push(ctx, make([]byte, memfifo.MaxRecord)) })
		}
		working.Go(func() {
			for b := make([]byte, memfifo.MaxRecord); ; {
				if _, err := q.Pop(ctx, b); err != nil {
					return
				}
			}
		})
		for range enough(4, 1) { // some give up
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			_ = r.Put(soon, 0, []byte{1})
			cancel()
			time.Sleep(500 * time.Millisecond)
		}
		stop()
		working.Wait()
		for _, name := range []string{"parcel", "Put", "a long Put", "PutV", "PostPut", "FetchAdd", "Flush", "Push", "a long Push"} {
			if done[name] < 10 {
				t.Errorf("%s: done %d times", name, done[name])
			}
		}
		t.Log(done)
		must(t, d.Flush(limit(t)))
	})
}

// Each goroutine's operations are in order, also those that had to wait in the send queue.
func TestOrder_OfOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, farther, 0)
		ctx := limit(t)
		d := c.domains[0]
		const each = 500_000
		w := c.window(t, 1, 8+4*each)
		r := d.Remote(w.Key())
		var working sync.WaitGroup
		for g := range byte(4) {
			working.Go(func() {
				off := 8 + int64(g)*each
				for i := range byte(enough(10, 3)) {
					p := &memfifo.Parcel{To: r, Off: off, Data: bytes.Repeat([]byte{2*i + 1}, each)}
					must(t, d.Post(p))
					must(t, r.Put(ctx, off+100, bytes.Repeat([]byte{2*i + 2}, each-200)))
					got := make([]byte, each)
					must(t, r.Get(ctx, off, got))
					want := append(append(bytes.Repeat([]byte{2*i + 1}, 100), bytes.Repeat([]byte{2*i + 2}, each-200)...), bytes.Repeat([]byte{2*i + 1}, 100)...)
					if !bytes.Equal(got, want) {
						t.Errorf("goroutine %d, round %d: not in order", g, i)
					}
				}
			})
		}
		working.Wait()
	})
}
