package memfifo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// Room that a Pop makes in the moment in which a record finds none is noticed. The program pops
// beside the goroutine that receives, in real time.
func TestFIFO_RoomThatIsMadeMeanwhile(t *testing.T) {
	c := open(t, 2, 0, fault.Config{}, 0)
	q := c.fifo(t, 1, memfifo.MinFIFO)
	ctx := limit(t)
	var pushing sync.WaitGroup
	total := enough(100_000, 10_000)
	pushing.Go(func() {
		r := c.domains[0].Remote(q.Key())
		for i := range total {
			if err := r.Push(ctx, stamped(0, i, 28)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	b := make([]byte, 28)
	last, looks := time.Now(), 0 // since the last record: a machine that stands still has few
	for got := 0; got < total; {
		_, ok, err := q.TryPop(b)
		must(t, err)
		if !ok {
			if looks++; looks > 10_000 && time.Since(last) > 5*time.Second {
				t.Errorf("stuck after %d records", got)
				_ = c.domains[1].Close()
				break
			}
			runtime.Gosched()
			continue
		}
		last, looks = time.Now(), 0
		if _, number, err := readStamp(b); number != got || err != nil {
			t.Fatalf("record %d: number %d, %v", got, number, err)
		}
		got++
	}
	pushing.Wait()
}

// Many nodes push into one small FIFO that several goroutines read: each record comes once.
func TestFIFO_BackPressureLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes, each, takers = 5, 400, 3
		c := open(t, nodes, -1, fault.Config{Loss: 0.05, Reorder: 0.1}, 5)
		ctx, cancel := context.WithCancel(limit(t))
		q := c.fifo(t, 0, 1000)
		var pushing, taking sync.WaitGroup
		for k := 1; k < nodes; k++ {
			pushing.Go(func() {
				for i := range each {
					if err := c.domains[k].Remote(q.Key()).Push(ctx, stamped(k, i, i%400)); err != nil {
						t.Errorf("node %d: %v", k, err)
						return
					}
				}
				if err := c.domains[k].Flush(ctx); err != nil {
					t.Errorf("node %d: %v", k, err)
				}
			})
		}
		var mu sync.Mutex
		seen := map[string]int{}
		for range takers {
			taking.Go(func() {
				b := make([]byte, 1000)
				for {
					n, err := q.Pop(ctx, b)
					if err != nil {
						return
					}
					k, i, err := readStamp(b[:n])
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					seen[fmt.Sprint(k, i)]++
					mu.Unlock()
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		pushing.Wait()
		for q.Len() > 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		taking.Wait()
		for k := 1; k < nodes; k++ {
			for i := range each {
				if n := seen[fmt.Sprint(k, i)]; n != 1 {
					t.Errorf("node %d's record %d came %d times", k, i, n)
				}
			}
		}
	})
}

// Two nodes flood each other's small FIFOs, and both wait for replies behind that: neither stands
// still.
func TestFIFO_FloodsBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{Loss: 0.02}, 6)
		ctx := limit(t)
		const each = 2000
		var all sync.WaitGroup
		var keys [2]memfifo.Key
		var windows [2]*memfifo.Window
		for k, d := range c.domains {
			q, err := d.NewFIFO(1, make([]byte, memfifo.MinFIFO))
			must(t, err)
			windows[k], err = d.Register(1, make([]byte, 100_000), memfifo.All)
			must(t, err)
			keys[k] = q.Key()
			all.Go(func() {
				b := make([]byte, 28)
				for i := range each {
					n, err := q.Pop(ctx, b)
					if err != nil {
						t.Errorf("record %d: %v", i, err)
						return
					}
					if _, number, err := readStamp(b[:n]); number != i || err != nil {
						t.Errorf("record %d: number %d, %v", i, number, err)
					}
				}
			})
		}
		for k, d := range c.domains {
			all.Go(func() {
				for i := range each {
					if err := d.Remote(keys[1-k]).Push(ctx, stamped(k, i, 28)); err != nil {
						t.Error(err)
						return
					}
				}
			})
			r := d.Remote(windows[1-k].Key())
			for range 2 {
				all.Go(func() {
					b := make([]byte, 90_000)
					for range 20 {
						_, err := r.FetchAdd(ctx, 0, 1)
						if err := errors.Join(err, r.Get(ctx, 8, b)); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		for _, w := range windows {
			if v, _ := w.Load(0); v != 40 {
				t.Errorf("the word is %d", v)
			}
		}
	})
}

// Closing a FIFO releases the senders that it held up: their records are refused.
func TestFIFO_CloseWhileSendersAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		d := c.domains[0]
		w := c.window(t, 1, 64)
		q := c.full(t, 1)
		must(t, d.Remote(q.Key()).Push(ctx, make([]byte, 20)))
		must(t, d.Remote(w.Key()).Put(ctx, 0, []byte{1}))
		time.Sleep(time.Second)
		if w.Bytes()[0] != 0 {
			t.Error("a Put has overtaken a Push")
		}
		must(t, q.Close())
		must(t, q.Close())
		err := d.Flush(ctx)
		if access, ok := errors.AsType[*memfifo.AccessError](err); !ok || access.Count != 2 || access.Reason != memfifo.NoSuchID {
			t.Errorf("%v: want two refusals", err)
		}
		if w.Bytes()[0] != 1 {
			t.Error("the Put behind them is not in place")
		}
		again := c.fifo(t, 1, 64)                 // under the same id
		must(t, d.Remote(q.Key()).Push(ctx, nil)) // with the former key
		if err := d.Flush(ctx); !errors.Is(err, memfifo.ErrAccess) || again.Len() != 0 {
			t.Errorf("%v, %d bytes in use", err, again.Len())
		}
		if _, err := q.Pop(ctx, make([]byte, 20)); err != nil { // what is there may be taken still
			t.Error(err)
		}
	})
}

// A sender that leaves while it is held gives up its turn: others find the room that is there.
func TestFull_ASenderThatLeavesGivesUpItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 3, -1, fault.Config{}, 0)
		q := c.full(t, 1)
		other := c.domains[2].Remote(q.Key())
		if err := other.TryPush(limit(t), make([]byte, 8)); !errors.Is(err, memfifo.ErrFull) {
			t.Errorf("while another sender waits for room: %v", err)
		}
		_ = c.domains[0].Close()
		must(t, other.TryPush(limit(t), make([]byte, 8)))
	})
}

// stoppedLink is a link that has no room while it is stopped.
type stoppedLink struct {
	transport.Link
	stopped atomic.Bool
}

func (l *stoppedLink) Send(frames []transport.Frame) (int, error) {
	if l.stopped.Load() {
		return 0, transport.ErrBusy
	}
	return l.Link.Send(frames)
}

// What a link had no room for is sent soon after it has, and not when its acknowledgement is missed.
func TestFull_LinkIsTriedAgainSoon(t *testing.T) {
	const stop, soon = 260 * time.Microsecond, 350 * time.Microsecond // it is tried every 50 µs
	synctest.Test(t, func(t *testing.T) {
		var link *stoppedLink
		c := &cluster{}
		c.start(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
				if node != 0 {
					return inner
				}
				link = &stoppedLink{Link: inner}
				return link
			},
		})
		ctx, r := limit(t), c.domains[0].Remote(c.window(t, 1, 64).Key())
		for range 10 { // the first time there is no connection yet
			began := time.Now()
			link.stopped.Store(true)
			time.AfterFunc(stop, func() { link.stopped.Store(false) })
			must(t, r.Put(ctx, 0, []byte{2}))
			must(t, c.domains[0].Flush(ctx))
			if d := time.Since(began); d < stop || d > soon {
				t.Errorf("a link that had no room for %v has sent after %v", stop, d)
			}
		}
	})
}
