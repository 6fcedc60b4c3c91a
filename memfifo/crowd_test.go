package memfifo_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Where more callers wait than there is room for, most calls find room without a wait, and each has
// its turn, with one for each 32 us before it.
func TestCrowd_FewWaits(t *testing.T) {
	const perRoundTrip = 40
	for size, many := range map[int]struct{ callers, perWait int }{64: {1500, 40}, 1000: {400, 4}} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, ctx, _, r := twoNodes(t, farther, 0, size)
				end := time.Now().Add(time.Duration(enough(200, 60)) * time.Millisecond)
				var mu sync.Mutex
				calls, waits, longest := 0, 0, time.Duration(0)
				var all sync.WaitGroup
				for range many.callers {
					all.Go(func() {
						for time.Now().Before(end) {
							began := time.Now()
							must(t, r.Put(ctx, 0, make([]byte, size)))
							waited := time.Since(began)
							mu.Lock()
							if calls++; waited > 0 {
								waits++
							}
							longest = max(longest, waited)
							mu.Unlock()
						}
					})
				}
				all.Wait()
				t.Logf("%d callers, %d calls, %d waits, of %v at the most", many.callers, calls, waits, longest)
				if waits-many.callers > calls/many.perWait { // each one's first call may wait
					t.Errorf("%d of %d calls have waited", waits, calls)
				}
				if most := time.Duration(many.callers/perRoundTrip) * 2 * farther.DelayMax; longest > most {
					t.Errorf("a call has waited for %v: want %v at most", longest, most)
				}
			})
		})
	}
}

// Callers that come once, and find many before them, are all served: a quarter of the window is in
// use until then, however short a round trip is. Beside one that puts without pause, so many go on.
func TestCrowd_OfCallersThatComeOnce(t *testing.T) {
	near := fault.Config{Delay: 1, DelayMin: 20 * time.Microsecond, DelayMax: 20 * time.Microsecond}
	for name, cfg := range map[string]fault.Config{"far": farther, "near": near} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const size, callers, perRoundTrip = 1000, 4000, 40
					_, ctx, _, r := twoNodes(t, cfg, 0, size)
					var all, streaming sync.WaitGroup
					var over atomic.Bool
					if stream {
						streaming.Go(func() {
							time.Sleep(4 * cfg.DelayMax) // by when there is room again
							for k := 0; !over.Load(); k++ {
								must(t, r.Put(ctx, 0, make([]byte, 64)))
								if k%16 == 0 { // a frame
									time.Sleep(time.Microsecond)
								}
							}
						})
					}
					began := time.Now()
					for range callers {
						all.Go(func() { must(t, r.Put(ctx, 0, make([]byte, size))) })
					}
					all.Wait()
					if took, most := time.Since(began), callers/perRoundTrip*2*cfg.DelayMax; took > most {
						t.Errorf("%d calls of a frame have taken %v: want %v at most", callers, took, most)
					}
					over.Store(true)
					streaming.Wait()
				})
			})
		}
	}
}

// crowd is callers whose operations are to land in the order of each one's calls.
type crowd struct {
	d       *memfifo.Domain
	r, push *memfifo.Remote // words, one of each caller, and a FIFO
	callers int
	begin   func(c *crowd, k, i int) error // what caller k does in round i before it writes its word and pushes a record
	record  func(k int) int                // the record's length
}

func (c *crowd) off(k int) int64 { return int64(8 * k) }

// first and last are what a caller's word is in a round.
func first(i int) uint64 { return uint64(2*i + 1) }
func last(i int) uint64  { return uint64(2*i + 2) }

func word(v uint64) []byte { return binary.NativeEndian.AppendUint64(nil, v) }

// round is what a caller does.
func (c *crowd) round(ctx context.Context, k, i int) error {
	return errors.Join(c.begin(c, k, i), c.r.Put(ctx, c.off(k), word(last(i))), c.push.Push(ctx, stamped(k, i, c.record(k))))
}

// Of each goroutine of a crowd, operations land in the order of its calls, whatever the others do:
// parcels and posted puts that it does not wait for, and records in parts.
func TestCrowd_OrderOfEach(t *testing.T) {
	const few = 10                        // one caller in so many is another
	short := func(int) int { return 200 } // all of them fill the window several times
	none := func(*crowd, int, int) error { return nil }
	seed := rand.Uint64()
	for name, c := range map[string]crowd{
		"parcels": {record: short, begin: func(c *crowd, k, i int) error {
			if k%few > 0 {
				return nil
			}
			return c.d.Post(&memfifo.Parcel{To: c.r, Off: c.off(k), Data: word(first(i))})
		}},
		"posted puts": {record: short, begin: func(c *crowd, k, i int) error {
			if k%few > 0 {
				return nil
			}
			return c.d.PostPut(new(heard).put(c.r, c.off(k), word(first(i)), c.push, string(stamped(c.callers+k, i, 1200))))
		}},
		"with replies": {record: short, begin: func(c *crowd, k, i int) error {
			old, err := c.r.FetchAdd(context.Background(), c.off(c.callers+k), 1)
			if err == nil && old != uint64(i) {
				err = fmt.Errorf("%d were added: want %d", old, i)
			}
			return err
		}},
		"vectors": {record: short, begin: func(c *crowd, k, i int) error {
			return c.r.PutV(context.Background(), memfifo.Segment{Off: c.off(k), Data: word(first(i))}, memfifo.Segment{Off: c.off(c.callers + k), Data: word(0)})
		}},
		"batches": {record: short, begin: func(c *crowd, k, i int) error {
			posted := stamped(c.callers+k, i, 20)
			return c.push.PushBatch(context.Background(), posted)
		}},
		"records of a frame": {begin: none, record: func(int) int { return 1000 }},
		"long records": {begin: none, record: func(k int) int {
			if k%few > 0 {
				return 200
			}
			return 5000
		}},
	} {
		for _, loss := range []float64{0, 0.01} {
			cfg := farther
			cfg.Loss = loss
			t.Run(fmt.Sprintf("%s, loss %v", name, loss), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.run(t, cfg, seed) })
			})
		}
	}
}

func (c crowd) run(t *testing.T, cfg fault.Config, seed uint64) {
	rounds := enough(12, 4)
	c.callers = 600
	nodes, ctx, w, r := twoNodes(t, cfg, seed, 2*8*c.callers)
	q := nodes.fifo(t, 1, 1<<20)
	c.d, c.r = nodes.domains[0], r
	c.push = c.d.Remote(q.Key())
	var all sync.WaitGroup
	for k := range c.callers {
		all.Go(func() {
			for i := range rounds {
				if err := c.round(ctx, k, i); err != nil {
					if ctx.Err() == nil {
						t.Errorf("caller %d, round %d: %v; seed %d", k, i, err, seed)
					}
					return
				}
			}
		})
	}
	next := map[int]int{}
	b := make([]byte, memfifo.MaxRecord)
	for n := 0; n < c.callers*rounds; {
		got, err := q.Pop(ctx, b)
		must(t, err)
		k, i, err := readStamp(b[:got])
		if err != nil || i != next[k] {
			t.Fatalf("record %d of caller %d, %v: %d was next; seed %d", i, k, err, next[k], seed)
		}
		next[k]++
		if posted := next[c.callers+k]; k < c.callers && posted > 0 && posted != next[k] {
			t.Fatalf("record %d of caller %d has come, and %d of its posted ones; seed %d", i, k, posted, seed)
		}
		if k < c.callers {
			if is, err := w.Load(c.off(k)); err != nil || is < last(i) {
				t.Fatalf("record %d of caller %d has come, and its word is %d: want %d or more; seed %d", i, k, is, last(i), seed)
			}
			n++
		}
	}
	all.Wait()
	must(t, c.d.Flush(ctx))
	for k := range c.callers {
		if got, err := w.Load(c.off(k)); err != nil || got != last(rounds-1) {
			t.Errorf("caller %d's word is %d: its last write was %d; seed %d", k, got, last(rounds-1), seed)
		}
	}
}
