package memfifo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport/fault"
)

// A sender to which the path is broken, and from which it is not, is down, though it begins anew
// again and again: its hellos are no sign of life of the one that is expected.
func TestExpect_WhomNothingReaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, 2, -1, fault.Config{}, 0)
		q := c.fifo(t, 0, 1<<10)
		must(t, q.Expect(1))
		d := c.domains[1]
		r := d.Remote(q.Key())
		must(t, r.Push(limit(t), nil))
		must(t, d.Flush(limit(t)))
		must(t, c.faults[1].SetConfig(fault.Config{Loss: 1})) // of what it receives
		trying, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for trying.Err() == nil {
				time.Sleep(100 * time.Millisecond)
				if r.Push(trying, nil) != nil {
					_ = d.Flush(trying)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		_, err := q.Pop(ctx, nil)
		for err == nil {
			_, err = q.Pop(ctx, nil)
		}
		took := time.Since(begun)
		stop()
		<-ended
		if d := downs(t, err); len(d) != 1 || d[1] != memfifo.Silent || took > 5*memfifo.DefaultPeerTimeout {
			t.Errorf("after %v: %v", took, d)
		}
	})
}
