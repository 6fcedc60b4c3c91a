package memfifo_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// stamped makes a record that carries its sender and number, filled so that a mixture of two shows.
func stamped(sender, number, size int) []byte {
	b := bytes.Repeat([]byte{byte(37*sender + number)}, max(size, 8))
	binary.BigEndian.PutUint32(b, uint32(sender))
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	return b
}

// readStamp checks a record of stamped.
func readStamp(b []byte) (sender, number int, err error) {
	if len(b) < 8 {
		return 0, 0, fmt.Errorf("a record of %d bytes", len(b))
	}
	sender, number = int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if !bytes.Equal(b, stamped(sender, number, len(b))) {
		return 0, 0, fmt.Errorf("record %d of sender %d, %d bytes: it is not what was pushed", number, sender, len(b))
	}
	return sender, number, nil
}

// Several goroutines of one node push long and short records to one owner: none lands in another.
func TestPush_LongRecordsOfSeveralGoroutinesDoNotMix(t *testing.T) {
	for _, two := range []bool{false, true} { // FIFOs at the owner
		synctest.Test(t, func(t *testing.T) {
			c := open(t, 2, -1, fault.Config{}, 0)
			ctx := limit(t)
			q := c.fifo(t, 1, 300_000)
			last := q
			if two {
				var err error
				last, err = c.domains[1].NewFIFO(2, make([]byte, 300_000))
				must(t, err)
			}
			const senders, each = 4, 20
			var pushing sync.WaitGroup
			for k := range senders {
				to := q
				if k%2 == 1 {
					to = last
				}
				pushing.Go(func() {
					r := c.domains[0].Remote(to.Key())
					for i := range each {
						size := 100_000 + 1000*k
						if k == 3 && i%2 == 1 {
							size = 10
						}
						must(t, r.Push(ctx, stamped(k, i, size)))
					}
				})
			}
			var popping sync.WaitGroup
			pop := func(q *memfifo.FIFO, count int) {
				defer func() {
					if t.Failed() {
						_ = c.domains[1].Close() // so that those who push do not wait for ever
					}
				}()
				next := make([]int, senders)
				b := make([]byte, memfifo.MaxRecord)
				for range count {
					n, err := q.Pop(ctx, b)
					must(t, err)
					sender, number, err := readStamp(b[:n])
					must(t, err)
					if number != next[sender] {
						t.Fatalf("sender %d: record %d comes before %d", sender, number, next[sender])
					}
					next[sender]++
				}
			}
			if two {
				popping.Go(func() { pop(q, senders*each/2) })
				popping.Go(func() { pop(last, senders*each/2) })
			} else {
				popping.Go(func() { pop(q, senders*each) })
			}
			popping.Wait()
			pushing.Wait()
			must(t, c.domains[0].Flush(ctx))
			if n := c.domains[1].Counters().Malformed; n != 0 {
				t.Errorf("%d malformed", n)
			}
		})
	}
}

// Records that wait for more to share their frame are sent when the batch ends in an error.
func TestPush_ABatchThatEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		q := c.fifo(t, 1, 4096)
		w := c.window(t, 1, 64)
		err := c.domains[0].Remote(q.Key()).PushBatch(ctx, []byte("good"), make([]byte, memfifo.MaxRecord+1), []byte("never"))
		if !errors.Is(err, memfifo.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		b := make([]byte, 10)
		if n, err := q.Pop(ctx, b); err != nil || string(b[:n]) != "good" {
			t.Errorf("%q, %v", b[:n], err)
		}
		err = c.domains[0].Remote(w.Key()).PutV(ctx, memfifo.Segment{Off: 8, Data: []byte("12345678")}, memfifo.Segment{Off: -1})
		if err == nil {
			t.Error("put at -1")
		}
		if _, err := w.WaitWord(ctx, 8, func(v uint64) bool { return v != 0 }); err != nil {
			t.Error(err)
		}
	})
}

// A record that has begun is completed whatever its context says, and its caller's memory is free
// when that ends; those that wait behind it give up. Each comes whole or not at all.
func TestPush_AContextThatEndsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		ctx := limit(t)
		q, err := c.domains[1].NewFIFO(2, make([]byte, 1<<20))
		must(t, err)
		stopper := c.full(t, 1)
		r := c.domains[0].Remote(q.Key())
		var pushing sync.WaitGroup
		results := make([]error, 10)
		for k := range results {
			pushing.Go(func() {
				soon, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				size := 120_000
				if k%2 == 1 {
					size = 10
				}
				rec, begun := stamped(k, 0, size), time.Now()
				results[k] = r.Push(soon, rec)
				clear(rec)
				if took := time.Since(begun); took > time.Second {
					t.Errorf("record %d took %v", k, took)
				}
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		must(t, stopper.Close())
		pushing.Wait()
		_ = c.domains[0].Flush(ctx) // tells of what was refused by the stopper
		b := make([]byte, memfifo.MaxRecord)
		came := make([]bool, len(results))
		for q.Len() > 0 {
			n, err := q.Pop(ctx, b)
			must(t, err)
			k, _, err := readStamp(b[:n])
			must(t, err)
			came[k] = true
		}
		ended := 0
		for k, err := range results {
			if came[k] != (err == nil) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("record %d: came %v, %v", k, came[k], err)
			}
			if err != nil {
				ended++
			}
		}
		if ended == 0 || ended == len(results) {
			t.Errorf("%d of %d gave up", ended, len(results))
		}
		if n := c.domains[1].Counters().Malformed; n != 0 {
			t.Errorf("%d malformed", n)
		}
	})
}
