package mpi_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// BenchmarkPingPong is a round trip of a message between two processes on the fabric: late receives
// when the message may have come, the others before. -benchmem has to say 0 allocations.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{4, 1024, 8 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(2 * size))
			first := inWorlds(b, func(c *mpi.Comm) { pingPong(b, c, size) })
			b.ReportMetric(float64(first.Counters().Written)/float64(b.N), "written/op")
		})
	}
}

// inWorlds runs a program in two processes on the fabric, and returns the world of the first one,
// which is closed.
func inWorlds(b *testing.B, program func(c *mpi.Comm)) *mpi.World {
	var worlds []*mpi.World
	for _, ep := range mcdtest.Open(b, 2, mcdtest.Config{}) {
		w, err := mpi.Open(ep, mpi.Config{})
		if err != nil {
			b.Fatal(err)
		}
		worlds = append(worlds, w)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var ranks sync.WaitGroup
	for _, w := range worlds {
		ranks.Go(func() { program(w.Comm()) })
	}
	ranks.Wait()
	b.StopTimer()
	for _, w := range worlds {
		ranks.Go(func() { _ = w.Close() })
	}
	ranks.Wait()
	return worlds[0]
}

func pingPong(b *testing.B, c *mpi.Comm, size int) {
	ctx := b.Context()
	buf, data := make([]byte, size), make([]byte, size)
	for range b.N {
		if c.Rank() == 0 {
			if err := mpi.Send(ctx, c, data, 1, 0); err != nil {
				b.Error(err)
				return
			}
		}
		if _, err := mpi.Recv(ctx, c, buf, 1-c.Rank(), 0); err != nil {
			b.Error(err)
			return
		}
		if c.Rank() == 1 {
			if err := mpi.Send(ctx, c, data, 0, 0); err != nil {
				b.Error(err)
				return
			}
		}
	}
}

// BenchmarkLayout is a round trip of every second element.
func BenchmarkLayout(b *testing.B) {
	for _, count := range []int{128, 8 << 10, 64 << 10} {
		b.Run(fmt.Sprint(8*count), func(b *testing.B) {
			inWorlds(b, func(c *mpi.Comm) {
				l := mpi.Vector(count, 1, 2, mpi.Single[float64]())
				var err error
				ctx, data := b.Context(), make([]float64, 2*count)
				for range b.N {
					if c.Rank() == 0 {
						err = l.Send(ctx, c, data, 1, 0)
					}
					if err == nil {
						_, err = l.Recv(ctx, c, data, 1-c.Rank(), 0)
					}
					if err == nil && c.Rank() == 1 {
						err = l.Send(ctx, c, data, 0, 0)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkWin is one-sided operations between two processes on the fabric. -benchmem has to say 0
// allocations.
func BenchmarkWin(b *testing.B) {
	ctx, data := b.Context(), make([]int64, 1)
	for _, op := range []struct {
		name string
		do   func(w *mpi.Win[int64]) error
	}{
		{"put", func(w *mpi.Win[int64]) error { return w.Put(ctx, data, 1, 0) }},
		{"get", func(w *mpi.Win[int64]) error { return w.Get(ctx, data, 1, 0) }},
		{"fetch", func(w *mpi.Win[int64]) error { return second(w.FetchAndOp(ctx, 1, 1, 0, mpi.Add)) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			eps := mcdtest.Open(b, 2, mcdtest.Config{})
			var ranks sync.WaitGroup
			for k, ep := range eps {
				ranks.Go(func() {
					w, err := mpi.Open(ep, mpi.Config{})
					if err != nil {
						b.Error(err)
						return
					}
					v, err := mpi.NewWin(ctx, w.Comm(), make([]int64, 1))
					if err != nil {
						b.Error(err)
						return
					}
					err = v.Fence(ctx)
					if k == 0 {
						b.ReportAllocs()
						b.ResetTimer()
						for range b.N {
							err = errors.Join(err, op.do(v))
						}
						err = errors.Join(err, v.FlushAll(ctx))
						b.StopTimer()
					}
					if err = errors.Join(err, v.Fence(ctx), v.Free(ctx), w.Close()); err != nil {
						b.Error(err)
					}
				})
			}
			ranks.Wait()
		})
	}
}

// BenchmarkCollective is operations of two processes on the fabric.
func BenchmarkCollective(b *testing.B) {
	ctx, data, results := b.Context(), []int64{1}, make([][]int64, 2)
	for _, op := range []struct {
		name string
		do   func(c *mpi.Comm) error
	}{
		{"allreduce", func(c *mpi.Comm) error { return mpi.Allreduce(ctx, c, data, results[c.Rank()], mpi.Sum) }},
		{"iallreduce", func(c *mpi.Comm) error {
			_, err := mpi.Iallreduce(c, data, results[c.Rank()], mpi.Sum).Wait(ctx)
			return err
		}},
		{"bcast", func(c *mpi.Comm) error { return mpi.Bcast(ctx, c, results[c.Rank()], 0) }},
		{"barrier", func(c *mpi.Comm) error { return c.Barrier(ctx) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			for k := range results {
				results[k] = make([]int64, 1)
			}
			inWorlds(b, func(c *mpi.Comm) {
				for range b.N {
					if err := op.do(c); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkOutstanding has many requests under way at once: all receives and sends of a step are
// posted before it, as a halo exchange does, in each direction. It reports the time of a message.
func BenchmarkOutstanding(b *testing.B) {
	for _, size := range []int{8, 16 << 10} {
		for _, many := range []int{10, 100, 1000, 10000} {
			for _, order := range []string{"first", "last"} {
				b.Run(fmt.Sprintf("size=%d/posted=%d/%s", size, many, order), func(b *testing.B) {
					inWorlds(b, func(c *mpi.Comm) { outstanding(b, c, size, many, order == "last") })
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*many), "ns/message")
				})
			}
		}
	}
}

func outstanding(b *testing.B, c *mpi.Comm, size, many int, back bool) {
	memory := make([]byte, many*size)
	data := make([]byte, size)
	var requests []*mpi.Request
	for range b.N {
		requests = requests[:0]
		for k := range many {
			requests = append(requests, mpi.Irecv(c, memory[k*size:][:size], 1-c.Rank(), k))
		}
		if err := c.Barrier(b.Context()); err != nil {
			b.Error(err)
			return
		}
		for k := range many {
			if back {
				k = many - 1 - k
			}
			requests = append(requests, mpi.Isend(c, data, 1-c.Rank(), k))
		}
		if err := mpi.WaitAll(b.Context(), requests...); err != nil {
			b.Error(err)
			return
		}
	}
}
