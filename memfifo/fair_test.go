package memfifo_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Senders to a full FIFO get room in turn: each of four gets a quarter, whether its records are
// short or fill half of the FIFO, and all their Puts and Flushes end.
func TestFIFO_SendersAreServedInTurn(t *testing.T) {
	for name, size := range map[string]func(sender int) int{
		"equal":     func(int) int { return 28 },
		"one long":  func(sender int) int { return map[bool]int{true: 120, false: 28}[sender == 1] },
		"of frames": func(sender int) int { return 20 * sender },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const senders, total = 4, 4000
				c := open(t, 1+senders, -1, fault.Config{}, 0)
				q := c.fifo(t, 0, 256)
				ctx, cancel := context.WithCancel(limit(t))
				var pushing sync.WaitGroup
				for k := 1; k <= senders; k++ {
					pushing.Go(func() {
						r := c.domains[k].Remote(q.Key())
						for i := 0; r.Push(ctx, stamped(k, i, size(k))) == nil; i++ {
						}
					})
				}
				synctest.Wait() // all windows are full
				popped := map[int]int{}
				b := make([]byte, memfifo.MaxRecord)
				for range total {
					n, err := q.Pop(ctx, b)
					must(t, err)
					sender, number, err := readStamp(b[:n])
					if err != nil || number != popped[sender] {
						t.Fatalf("record %d of sender %d, %v: %d was next", number, sender, err, popped[sender])
					}
					popped[sender]++
					time.Sleep(10 * time.Microsecond) // so that the senders' retransmissions come
				}
				for k := 1; k <= senders; k++ {
					if n := popped[k]; n < total/senders*9/10 || n > total/senders*11/10 {
						t.Errorf("sender %d: %d of %d records", k, n, total)
					}
				}
				t.Log(popped)
				cancel()
				pushing.Wait()
				must(t, q.Close())
				for k := 1; k <= senders; k++ {
					_ = c.domains[k].Flush(limit(t)) // some records are refused now; but it ends
				}
			})
		})
	}
}

// Senders get room for one record at a time, also if one pop makes room for many.
func TestFIFO_RoomForManyIsSharedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 4, -1, fault.Config{}, 0)
		ctx := limit(t)
		q := c.fifo(t, 1, 1024)
		b := make([]byte, 500)
		for range 2 {
			must(t, c.domains[3].Remote(q.Key()).TryPush(ctx, b))
		}
		for i := range 10 {
			for _, k := range []int{0, 2} {
				must(t, c.domains[k].Remote(q.Key()).Push(ctx, stamped(k, i, 20)))
			}
		}
		synctest.Wait()
		for range 2 {
			_, err := q.Pop(ctx, b)
			must(t, err)
		}
		last := -1
		for range 20 {
			n, err := q.Pop(ctx, b)
			must(t, err)
			sender, _, err := readStamp(b[:n])
			must(t, err)
			if sender == last {
				t.Fatalf("node %d has two records, one behind the other, while another waits", sender)
			}
			last = sender
		}
	})
}
