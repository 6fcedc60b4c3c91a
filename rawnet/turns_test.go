package rawnet_test

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/transport/fault"
)

// Connections that write to one node without pause starve none: each goes on while others do, at
// about a record for each round trip at least, and one that says little is answered meanwhile.
func TestConn_WritersHaveTurns(t *testing.T) {
	const writers, each = 4, 16 << 20
	f := fault.Config{Delay: 1, DelayMin: 50 * time.Microsecond, DelayMax: 50 * time.Microsecond}
	bubble(t, options{fault: f, seed: 3, cfg: rawnet.Config{Window: 2 * each}}, func(t *testing.T, c *cluster) {
		asks, answers := c.pair(t, "brief")
		go func() { _, _ = io.Copy(answers, answers) }() // until the cluster closes
		var came [writers]atomic.Int64
		var writing, reading sync.WaitGroup
		var once sync.Once
		first := make(chan [writers]int64, 1) // what had come of each when one had come
		for k := range writers {
			a, b := c.pair(t, "long")
			writing.Go(func() {
				_, err := a.Write(make([]byte, each))
				if err == nil {
					err = a.CloseWrite()
				}
				if err != nil {
					t.Error(err)
				}
			})
			reading.Go(func() {
				buf := make([]byte, 64<<10)
				for {
					n, err := b.Read(buf)
					came[k].Add(int64(n))
					if err != nil {
						break
					}
				}
				once.Do(func() {
					var all [writers]int64
					for i := range all {
						all[i] = came[i].Load()
					}
					first <- all
				})
			})
		}
		over := make(chan struct{})
		go func() { writing.Wait(); reading.Wait(); close(over) }()
		rounds, begun := 0, time.Now()
		for one := make([]byte, 1); !isClosed(over); rounds++ {
			_, err := asks.Write(one)
			must(t, err)
			_, err = io.ReadFull(asks, one)
			must(t, err)
		}
		if took := time.Since(begun); rounds < int(took/(10*f.DelayMax)) {
			t.Errorf("%d answers in %v, where one takes %v", rounds, took, 2*f.DelayMax)
		}
		for k, n := range <-first { // after some 46 round trips, as of 1,430 bytes at least
			if n < each/512 {
				t.Errorf("connection %d: %d bytes of %d, when another was through", k, n, each)
			}
		}
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
