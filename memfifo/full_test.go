package memfifo_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// Room that is made at the very moment when a record finds none is noticed. The program takes records out beside the goroutine
// that receives, in real time.
func TestFIFO_RoomThatIsMadeMeanwhile(t *testing.T) {
	c := open(t, 2, 0, fault.Config{}, 0)
	q, err := c.domains[1].NewFIFO(1, make([]byte, memfifo.MinFIFO))
	must(t, err)
	ctx := limit(t)
	var pushing sync.WaitGroup
	const total = 100_000
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
	last := time.Now()
	for got := 0; got < total; {
		_, ok, err := q.TryPop(b)
		must(t, err)
		if !ok {
			if time.Since(last) > 5*time.Second {
				t.Errorf("stuck after %d records", got)
				_ = c.domains[1].Close()
				break
			}
			runtime.Gosched()
			continue
		}
		last = time.Now()
		if _, number, err := readStamp(b); number != got || err != nil {
			t.Fatalf("record %d: number %d, %v", got, number, err)
		}
		got++
	}
	pushing.Wait()
}
