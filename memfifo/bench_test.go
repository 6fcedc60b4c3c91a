package memfifo_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// BenchmarkCallers is what a Put of 1 KiB costs both ends together, from few goroutines and from
// many, which wait for room most of the time.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{8, 2048} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			eps, domains := piped(b)
			w, err := domains[1].Register(1, make([]byte, 4096), memfifo.All)
			must(b, err)
			r, ctx := domains[0].Remote(w.Key()), context.Background()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for data := make([]byte, 1024); left.Add(-1) >= 0; {
						if err := r.Put(ctx, 0, data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			over := make(chan error, 1)
			go func() {
				all.Wait()
				over <- domains[0].Flush(ctx)
			}()
			for len(over) == 0 {
				settle(eps)
				runtime.Gosched()
			}
			must(b, <-over)
		})
	}
}

// BenchmarkPush is what a record of 8 bytes costs both ends together, in one goroutine, without the
// kernel: pushed and taken out.
func BenchmarkPush(b *testing.B) {
	const burst = 64 * 40
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			eps, domains := piped(b)
			f, err := domains[1].NewFIFO(1, make([]byte, 1<<20))
			must(b, err)
			r := domains[0].Remote(f.Key())
			rec, out := make([]byte, 8), make([]byte, 8)
			recs := slices.Repeat([][]byte{rec}, batch)
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += burst {
				for range burst / batch {
					var err error
					if batch == 1 {
						err = r.Push(ctx, rec)
					} else {
						err = r.PushBatch(ctx, recs...)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				settle(eps)
				for {
					_, ok, err := f.TryPop(out)
					if err != nil {
						b.Fatal(err)
					}
					if !ok {
						break
					}
				}
			}
		})
	}
}
