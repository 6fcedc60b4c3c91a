package memfifo_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Behind the endpoint's Close an operation on another node says so: nothing is sent any more.
func TestEndpointClose_NothingGoesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		d, other, otherQ := c.domains[0], c.window(t, 1, 64), c.fifo(t, 1, 64)
		must(t, c.eps[0].Close())
		r, q := d.Remote(other.Key()), d.Remote(otherQ.Key())
		for name, do := range map[string]func() error{
			"Put":       func() error { return r.Put(ctx, 0, []byte{7}) },
			"PutV":      func() error { return r.PutV(ctx, memfifo.Segment{Data: []byte{7}}) },
			"PostPut":   func() error { return d.PostPut(new(heard).put(r, 0, []byte{7}, q, "")) },
			"Signal":    func() error { return r.Signal(ctx) },
			"Get":       func() error { return r.Get(ctx, 0, make([]byte, 1)) },
			"FetchAdd":  func() error { _, err := r.FetchAdd(ctx, 0, 7); return err },
			"Push":      func() error { return q.Push(ctx, []byte{7}) },
			"PushBatch": func() error { return q.PushBatch(ctx, []byte{7}) },
			"PostPush":  func() error { return q.PostPush([]byte{7}) },
			"Post":      func() error { return d.Post(&memfifo.Parcel{To: r, Data: []byte{7}}) },
		} {
			if err := do(); !errors.Is(err, memfifo.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// After Close every operation returns ErrClosed, each time, and writes nothing: on other nodes and
// on the node itself.
func TestClose_NothingGoesAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		mine, err := d.Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		mineQ, err := d.NewFIFO(1, make([]byte, 64))
		must(t, err)
		other := c.window(t, 1, 64)
		otherQ := c.fifo(t, 1, 64)
		must(t, d.Remote(other.Key()).Put(ctx, 0, []byte{1}))
		must(t, d.Close())
		for range 2 {
			for _, k := range []memfifo.Key{mine.Key(), mineQ.Key(), other.Key(), otherQ.Key()} {
				r := d.Remote(k)
				for name, do := range map[string]func() error{
					"Put":         func() error { return r.Put(ctx, 0, []byte{7}) },
					"PutV":        func() error { return r.PutV(ctx, memfifo.Segment{Data: []byte{7}}) },
					"PostPut":     func() error { return d.PostPut(new(heard).put(r, 0, []byte{7}, r, "")) },
					"Signal":      func() error { return r.Signal(ctx) },
					"Get":         func() error { return r.Get(ctx, 0, make([]byte, 1)) },
					"FetchAdd":    func() error { _, err := r.FetchAdd(ctx, 0, 7); return err },
					"Swap":        func() error { _, err := r.Swap(ctx, 0, 7); return err },
					"CompareSwap": func() error { _, err := r.CompareSwap(ctx, 0, 0, 7); return err },
					"Push":        func() error { return r.Push(ctx, []byte{7}) },
					"PushBatch":   func() error { return r.PushBatch(ctx, []byte{7}) },
					"TryPush":     func() error { return r.TryPush(ctx, []byte{7}) },
					"Post":        func() error { return d.Post(&memfifo.Parcel{To: r, Data: []byte{7}}) },
					"Flush":       func() error { return d.Flush(ctx) },
					"Register":    func() error { _, err := d.Register(9, nil, 0); return err },
					"NewFIFO":     func() error { _, err := d.NewFIFO(9, make([]byte, 64)); return err },
					"Pop":         func() error { _, err := mineQ.Pop(ctx, nil); return err },
					"FIFO.Wait":   func() error { return mineQ.Wait(ctx) },
					"Window.Wait": func() error { _, err := mine.Wait(ctx, 0); return err },
					"WaitWord": func() error {
						_, err := mine.WaitWord(ctx, 0, func(v uint64) bool { return v != 0 })
						return err
					},
				} {
					if err := do(); !errors.Is(err, memfifo.ErrClosed) {
						t.Errorf("%s to node %d: %v", name, k.Node, err)
					}
				}
			}
		}
		must(t, d.Close())
		must(t, mineQ.Close())
		mine.Revoke()
		if v, _ := mine.Load(0); v != 0 || mine.Notified() != 0 {
			t.Errorf("the word is %d, %d notifications", v, mine.Notified())
		}
	})
}

// A sender with operations under way to a node that closes its domain hears of that at once: what
// was acknowledged is in place, and the rest is lost. A sender with nothing under way loses
// nothing.
func TestClose_IsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		w, err := d.Register(1, make([]byte, 64), memfifo.All)
		must(t, err)
		must(t, c.domains[1].Remote(w.Key()).Put(ctx, 0, []byte{1})) // and does not flush
		must(t, c.domains[2].Remote(w.Key()).Put(ctx, 8, []byte{2}))
		must(t, c.domains[2].Flush(ctx))
		synctest.Wait()
		begun := time.Now()
		must(t, d.Close())
		down, ok := errors.AsType[*memfifo.PeerDownError](c.domains[1].Flush(ctx))
		if !ok || down.Reason != memfifo.Left || down.Node != 0 || !strings.Contains(down.Error(), "node 0 has left") {
			t.Errorf("not flushed: %v", down)
		}
		must(t, c.domains[2].Flush(ctx))
		must(t, c.domains[3].Flush(ctx))
		if took := time.Since(begun); took > 10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		for _, n := range []int{1, 2, 3} {
			if s := c.domains[n].Counters(); s.StaleIncarnation+s.Malformed > 0 {
				t.Errorf("node %d: %+v", n, s)
			}
		}
	})
}

// When Close returns the port is free, also for a second caller of Close.
func TestClose_SeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		w := c.window(t, 1, 64)
		c.faults[1].Cut(true)
		must(t, c.domains[0].Remote(w.Key()).Put(limit(t), 0, []byte{1})) // so that there is something to wait for
		d := c.domains[0]
		first := make(chan error)
		go func() { first <- d.Close() }()
		synctest.Wait()
		must(t, d.Close())
		again, err := memfifo.Open(c.eps[0], memfifo.Config{})
		must(t, err)
		c.domains[0] = again
		if err := <-first; !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("the first: %v", err)
		}
	})
}

// Close ends every wait with ErrClosed, or with its result. So does the Close of the endpoint, if
// that comes first.
func TestClose_EndsAllThatWaits(t *testing.T) {
	for i := range 4 {
		cut, endpointFirst := i%2 > 0, i/2 > 0
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, fault.Config{}, 0)
			ctx := context.Background()
			d := c.domains[0]
			mine, err := d.Register(1, make([]byte, 64), memfifo.All)
			must(t, err)
			mineQ, err := d.NewFIFO(1, make([]byte, 64))
			must(t, err)
			w := c.window(t, 1, 1<<20)
			q := c.fifo(t, 1, 64) // nobody takes anything out
			r, push := d.Remote(w.Key()), d.Remote(q.Key())
			parcel := &memfifo.Parcel{To: r, Data: make([]byte, 1<<20)}
			waits := map[string]func() error{
				"Pop":         func() error { _, err := mineQ.Pop(ctx, nil); return err },
				"Window.Wait": func() error { _, err := mine.Wait(ctx, 0); return err },
				"Push": func() error {
					for {
						if err := push.Push(ctx, make([]byte, 20)); err != nil {
							return err
						}
					}
				},
				"Put":        func() error { time.Sleep(time.Millisecond); return r.Put(ctx, 0, make([]byte, 1<<20)) },
				"Get":        func() error { time.Sleep(time.Millisecond); return r.Get(ctx, 0, make([]byte, 1<<20)) },
				"FetchAdd":   func() error { time.Sleep(time.Millisecond); _, err := r.FetchAdd(ctx, 0, 1); return err },
				"Flush":      func() error { time.Sleep(time.Millisecond); return d.Flush(ctx) },
				"WaitRemote": func() error { return parcel.WaitRemote(ctx) },
			}
			for err == nil {
				err = push.TryPush(ctx, make([]byte, 20))
			}
			if !errors.Is(err, memfifo.ErrFull) {
				t.Fatal(err)
			}
			must(t, push.Push(ctx, make([]byte, 20))) // holds up all that follows
			c.faults[1].Cut(cut)
			must(t, d.Post(parcel))
			var waiting sync.WaitGroup
			for name, wait := range waits {
				waiting.Go(func() {
					if err := wait(); !errors.Is(err, memfifo.ErrClosed) && (!cut || !errors.Is(err, memfifo.ErrPeerDown)) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			begun := time.Now()
			if endpointFirst {
				_ = c.eps[0].Close()
				waiting.Wait()
				if took := time.Since(begun); took > 0 {
					t.Errorf("it took %v", took)
				}
			}
			var closing sync.WaitGroup
			for range 2 {
				closing.Go(func() { _ = d.Close() })
			}
			closing.Wait()
			waiting.Wait()
			if took := time.Since(begun); took > 3*memfifo.DefaultPeerTimeout {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Who has something under way to a node that leaves hears of that well before the peer timeout,
// also if all but the last goodbyes are lost; and who leaves does not stay because answers are.
func TestClose_IsHeardInSpiteOfLoss(t *testing.T) {
	const last = 30 * time.Millisecond // after 1 + 2 + 4 + 8 of the shortest timeouts
	for lost := time.Duration(0); lost < last; lost += time.Millisecond {
		for _, deaf := range [][]int{{0}, {1}, {0, 1}} {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, 2, -1, fault.Config{}, 1)
				ctx := limit(t)
				w := c.window(t, 1, 64)
				r := c.domains[0].Remote(w.Key())
				must(t, r.Signal(ctx))
				must(t, c.domains[0].Flush(ctx))
				hear := func(loss float64) {
					for _, node := range deaf {
						must(t, c.faults[node].SetConfig(fault.Config{Loss: loss}))
					}
				}
				hear(1)
				begun := time.Now()
				time.AfterFunc(lost, func() { hear(0) })
				must(t, r.Put(ctx, 0, []byte{1})) // under way before the goodbye comes
				closed := make(chan error, 1)
				go func() { closed <- c.domains[1].Close() }()
				err := c.domains[0].Flush(ctx)
				if took := time.Since(begun); took > 10*last || err != nil && !errors.Is(err, memfifo.ErrPeerDown) {
					t.Errorf("%v deaf for %v: Flush ends after %v: %v", deaf, lost, took, err)
				}
				must(t, <-closed)
				if took := time.Since(begun); took > 10*last {
					t.Errorf("%v deaf for %v: Close took %v", deaf, lost, took)
				}
			})
		}
	}
}
