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

// farther is a link on which a window of frames takes a while.
var farther = fault.Config{Delay: 1, DelayMin: time.Millisecond, DelayMax: time.Millisecond}

// Who never lets the parcels end does not keep others of its node from a peer, whatever they do; nor do these keep the parcels from it.
func TestTurns_ParcelsAndCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, farther, 0)
		ctx, stop := context.WithCancel(limit(t))
		d := c.domains[0]
		w, err := c.domains[1].Register(1, make([]byte, 1<<20), memfifo.All)
		must(t, err)
		q, err := c.domains[1].NewFIFO(1, make([]byte, 1<<20))
		must(t, err)
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
		for range 20 { // some give up
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			_ = r.Put(soon, 0, []byte{1})
			cancel()
			time.Sleep(time.Second)
		}
		stop()
		working.Wait()
		for _, name := range []string{"parcel", "Put", "a long Put", "PutV", "FetchAdd", "Flush", "Push", "a long Push"} {
			if done[name] < 10 {
				t.Errorf("%s: done %d times", name, done[name])
			}
		}
		t.Log(done)
		must(t, d.Flush(limit(t)))
	})
}

// Each goroutine's operations are in order all the same, also those that had to wait for their turn.
func TestTurns_OrderOfOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, farther, 0)
		ctx := limit(t)
		d := c.domains[0]
		const each = 500_000
		w, err := c.domains[1].Register(1, make([]byte, 8+4*each), memfifo.All)
		must(t, err)
		r := d.Remote(w.Key())
		var working sync.WaitGroup
		for g := range byte(4) {
			working.Go(func() {
				off := 8 + int64(g)*each
				for i := range byte(10) {
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

// A Put that goes on where the last one ended, on the other side of a loss: its place is its own, and not where the peer believes that
// the last one ended.
func TestFailure_ASequelBehindALoss(t *testing.T) {
	const size, part = 60_000, 10_000
	for _, how := range []string{"Put", "parcel", "WriteAt"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, 2, -1, fault.Config{}, 0)
				ctx := limit(t)
				d := c.domains[0]
				w, err := c.domains[1].Register(1, make([]byte, size), memfifo.All)
				must(t, err)
				r := d.Remote(w.Key())
				put := func(i int) error {
					data := bytes.Repeat([]byte{byte(1 + i)}, part)
					switch how {
					case "parcel":
						return d.Post(&memfifo.Parcel{To: r, Off: int64(i * part), Data: data})
					case "WriteAt":
						_, err := r.WriteAt(data, int64(i*part))
						return err
					}
					return r.Put(ctx, int64(i*part), data)
				}
				must(t, put(0))
				must(t, d.Flush(ctx))
				c.faults[1].Cut(true)
				must(t, put(1)) // is lost
				if err := d.Flush(ctx); !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("Flush: %v", err)
				}
				c.faults[1].Cut(false)
				must(t, put(2))
				must(t, d.Flush(ctx))
				must(t, put(3))
				must(t, d.Flush(ctx))
				for i, want := range []byte{1, 0, 3, 4, 0, 0} {
					if got := w.Bytes()[i*part:][:part]; !bytes.Equal(got, bytes.Repeat([]byte{want}, part)) {
						t.Errorf("part %d is %d...%d, want %d", i, got[0], got[part-1], want)
					}
				}
				if n := c.domains[1].Counters().Malformed; n > 0 {
					t.Errorf("%d malformed", n)
				}
			})
		})
	}
}

// Store has those look again who wait for the word, as an operation of another node has.
func TestWindow_StoreWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		w, err := c.domains[0].Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		var waiting sync.WaitGroup
		begun := time.Now()
		for want := range uint64(3) {
			waiting.Go(func() {
				v, err := w.WaitWord(ctx, 8, func(v uint64) bool { return v > want })
				if err != nil || v <= want {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		for v := range uint64(3) {
			synctest.Wait()
			must(t, w.Store(8, v+1))
		}
		waiting.Wait()
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
	c := open(t, 2, 0, fault.Config{}, 0) // and none is lost between a look at the word and the sleep
	ctx := limit(t)
	w, err := c.domains[0].Register(1, make([]byte, 16), memfifo.All)
	must(t, err)
	const rounds = 2000
	go func() {
		for v := range uint64(rounds) {
			if _, err := w.WaitWord(ctx, 0, func(is uint64) bool { return is == v+1 }); err != nil {
				t.Errorf("round %d: %v", v, err)
				return
			}
			_ = w.Store(8, v+1)
		}
	}()
	for v := range uint64(rounds) {
		must(t, w.Store(0, v+1))
		_, err := w.WaitWord(ctx, 8, func(is uint64) bool { return is == v+1 })
		must(t, err)
	}
	b := binary.NativeEndian.AppendUint64(nil, 7)
	if n := testing.AllocsPerRun(1000, func() { _ = w.Store(0, binary.NativeEndian.Uint64(b)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
