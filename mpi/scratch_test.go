//go:build !race

package mpi_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// What operations combine and pack in is memory of the calls before. With the race detector a
// sync.Pool drops some of what it is given.
func TestScratch_IsUsedAgain(t *testing.T) {
	const ranks, count, calls = 3, 1 << 14, 20
	type operation = func(ctx context.Context, c *mpi.Comm, data, result []float64) error
	sum := mpi.Sum[float64]
	by := func(operation, name string) mpi.Config {
		return mpi.Config{Algorithms: []mpi.Algorithm{{Operation: operation, Name: name}}}
	}
	allreduce := func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
		return mpi.Allreduce(ctx, c, data, result, sum)
	}
	for _, x := range []struct {
		what string
		cfg  mpi.Config
		do   operation
	}{
		{"Allreduce by halving", by("allreduce", "halving and doubling"), allreduce},
		{"Allreduce by doubling", by("allreduce", "recursive doubling"), allreduce},
		{"Reduce", mpi.Config{}, func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			return mpi.Reduce(ctx, c, data, result, sum, 1)
		}},
		{"Scan", mpi.Config{}, func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			return mpi.Scan(ctx, c, data, result, sum)
		}},
		{"Exscan", mpi.Config{}, func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			return mpi.Exscan(ctx, c, data, result, sum)
		}},
		{"ReduceScatter", mpi.Config{}, func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			return mpi.ReduceScatter(ctx, c, data, result[:count/2*c.Rank()], []int{0, count / 2, count}[:c.Size()], sum)
		}},
		{"Alltoall", by("alltoall", "store and forward"), func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			return mpi.Alltoall(ctx, c, data[:count/ranks*ranks], result[:count/ranks*ranks])
		}},
		{"Send of every second element", mpi.Config{}, func(ctx context.Context, c *mpi.Comm, data, result []float64) error {
			l := mpi.Vector(count/2, 1, 2, mpi.Single[float64]())
			sent := l.Isend(c, data, (c.Rank()+1)%ranks, 0)
			if _, err := l.Recv(ctx, c, result, (c.Rank()+ranks-1)%ranks, 0); err != nil {
				return err
			}
			return second(sent.Wait(ctx))
		}},
	} {
		bubble(t, ranks, fault.Config{}, x.cfg, func(t *testing.T, c *mpi.Comm) {
			data, result := make([]float64, count*ranks/2), make([]float64, count*ranks/2)
			if x.what != "ReduceScatter" {
				data, result = data[:count], result[:count]
			}
			var before, after runtime.MemStats
			for call := range 1 + calls {
				if call == 1 {
					must(t, c.Barrier(t.Context()))
					runtime.ReadMemStats(&before)
				}
				must(t, x.do(t.Context(), c, data, result))
			}
			must(t, c.Barrier(t.Context()))
			runtime.ReadMemStats(&after)
			const size = count * 8
			if took := (after.TotalAlloc - before.TotalAlloc) / calls; took > size {
				t.Errorf("%s of %d bytes: %d bytes are allocated in %d ranks' calls, want few", x.what, size, took, ranks)
			}
		})
	}
}
