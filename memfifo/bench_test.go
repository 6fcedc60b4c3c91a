package memfifo_test

import (
	"context"
	"testing"

	"github.com/rawlane/rawlane/memfifo"
)

// BenchmarkPut is what a Put of 64 KiB costs both ends together, in one goroutine, without the
// kernel: per frame, copies and checksums included.
func BenchmarkPut(b *testing.B) {
	const size = 64 << 10
	eps, domains := piped(b)
	var remotes [2]*memfifo.Remote
	for k, d := range domains {
		w, err := d.Register(1, make([]byte, size), memfifo.All)
		must(b, err)
		remotes[1-k] = domains[1-k].Remote(w.Key())
	}
	data := make([]byte, size)
	ctx := context.Background()
	run := func(b *testing.B, duplex bool) {
		before := domains[0].Counters().Sent + domains[1].Counters().Sent
		b.SetBytes(size)
		for b.Loop() {
			must(b, remotes[0].Put(ctx, 0, data))
			if duplex {
				must(b, remotes[1].Put(ctx, 0, data))
			}
			settle(eps)
		}
		frames := domains[0].Counters().Sent + domains[1].Counters().Sent - before
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
	}
	b.Run("one way", func(b *testing.B) { run(b, false) })
	b.Run("both ways", func(b *testing.B) { run(b, true) })
}

// BenchmarkSmallPut is what a Put of 8 bytes in a burst of 200 costs both ends together.
func BenchmarkSmallPut(b *testing.B) {
	eps, domains := piped(b)
	w, err := domains[1].Register(1, make([]byte, 4096), memfifo.All)
	must(b, err)
	r := domains[0].Remote(w.Key())
	data := make([]byte, 8)
	ctx := context.Background()
	i := 0
	for b.Loop() {
		if err := r.Put(ctx, int64(i%500)*8, data); err != nil {
			b.Fatal(err)
		}
		if i++; i%200 == 0 {
			settle(eps)
		}
	}
}
