package memfifo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport/fault"
)

// Over a path whose round trip is longer than a tenth of a second a put takes as many round trips as
// over a shorter one, and nothing is sent twice, once the path is measured.
func TestPut_OverALongPath(t *testing.T) {
	for _, trip := range []time.Duration{90 * time.Millisecond, 110 * time.Millisecond, 200 * time.Millisecond, 240 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c, ctx, _, r := twoNodes(t, fault.Config{Delay: 1, DelayMin: trip / 2, DelayMax: trip / 2}, 0, 1<<20)
			d := c.domains[0]
			data := make([]byte, 256<<10)
			put := func(n int) {
				must(t, r.Put(ctx, 0, data[:n]))
				must(t, d.Flush(ctx))
			}
			put(len(data))
			for range 10 {
				put(64)
			}
			before, began := d.Counters(), time.Now()
			const rounds = 5
			for range rounds {
				put(len(data))
			}
			again, took := d.Counters().Retransmitted-before.Retransmitted, time.Since(began)/rounds
			if again > 0 || took > 2*trip {
				t.Errorf("round trip %v: a put of 256 KiB takes %v, and %d frames are sent twice", trip, took, again)
			}
		})
	}
}
