package memfifo_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// stamped is a record that says whose it is and which, and is filled so that a mixture of two shows.
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
			q, err := c.domains[1].NewFIFO(1, make([]byte, 300_000))
			must(t, err)
			last := q
			if two {
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
