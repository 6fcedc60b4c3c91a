package bench

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/mpi"
)

// mpiWindow is how many messages are under way at once.
const mpiWindow = 64

// mpiNode is a rank.
type mpiNode struct {
	*node
	c *mpi.Comm
}

// pattern is the bytes of a size that a rank sends.
func pattern(rank, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + rank)
	}
	return b
}

// compare checks what has arrived from a rank.
func (n *mpiNode) compare(from int, got []byte) error {
	if !bytes.Equal(got, pattern(from, len(got))) {
		return fmt.Errorf("%d bytes have arrived that rank %d has not sent", len(got), from)
	}
	return nil
}

// compareAll checks what has arrived from all ranks, as many bytes of each.
func (n *mpiNode) compareAll(got []byte, size int) error {
	for from := range n.c.Size() {
		if err := n.compare(from, got[from*size:][:size]); err != nil {
			return err
		}
	}
	return nil
}

// warmUp is how many iterations do not count: as in the OSU benchmarks, more of short messages.
func (r *mpiResult) warmUp() int {
	if r.SizeBytes > largeMessage || r.Window > 0 {
		return max(10, r.Iters/warmUpShare)
	}
	return max(200, r.Iters/warmUpShare)
}

// latency is osu_latency's loop.
func (n *mpiNode) latency(ctx context.Context, r *mpiResult) error {
	other := 1 - n.c.Rank()
	out, in := pattern(n.c.Rank(), r.SizeBytes), make([]byte, r.SizeBytes)
	send := func() error { return mpi.Send(ctx, n.c, out, other, 1) }
	receive := func() error { _, err := mpi.Recv(ctx, n.c, in, other, 1); return err }
	first, second := send, receive
	if n.c.Rank() == 1 {
		first, second = receive, send
	}
	h, took, err := timed(r.warmUp(), r.Iters, 2, func() error {
		if err := first(); err != nil {
			return err
		}
		return second()
	}, unchecked)
	if err != nil {
		return err
	}
	r.recordPingPong(h, took)
	return n.compare(other, in)
}

// bandwidth is osu_bw's loop: rank 1 answers when it has a window of messages.
func (n *mpiNode) bandwidth(ctx context.Context, r *mpiResult) error {
	answer := make([]byte, 4)
	if n.c.Rank() == 0 {
		data := pattern(0, r.SizeBytes)
		return n.windows(ctx, r, 1, func(requests []*mpi.Request) error {
			for k := range requests {
				requests[k] = mpi.Isend(n.c, data, 1, 100)
			}
			if err := mpi.WaitAll(ctx, requests...); err != nil {
				return err
			}
			_, err := mpi.Recv(ctx, n.c, answer, 1, 101)
			return err
		})
	}
	buf := make([]byte, r.SizeBytes)
	err := n.windows(ctx, r, 1, func(requests []*mpi.Request) error {
		for k := range requests {
			requests[k] = mpi.Irecv(n.c, buf, 0, 100)
		}
		if err := mpi.WaitAll(ctx, requests...); err != nil {
			return err
		}
		return mpi.Send(ctx, n.c, answer, 0, 101)
	})
	if err != nil {
		return err
	}
	return n.compare(0, buf)
}

// bothWays is osu_bibw's loop.
func (n *mpiNode) bothWays(ctx context.Context, r *mpiResult) error {
	other := 1 - n.c.Rank()
	data, buf := pattern(n.c.Rank(), r.SizeBytes), make([]byte, r.SizeBytes)
	receives := make([]*mpi.Request, mpiWindow)
	err := n.windows(ctx, r, 2, func(sends []*mpi.Request) error {
		for k := range receives {
			receives[k] = mpi.Irecv(n.c, buf, other, 10)
		}
		for k := range sends {
			sends[k] = mpi.Isend(n.c, data, other, 10)
		}
		if err := mpi.WaitAll(ctx, sends...); err != nil {
			return err
		}
		return mpi.WaitAll(ctx, receives...)
	})
	if err != nil {
		return err
	}
	return n.compare(other, buf)
}

// windows takes the time of windows of messages, in one direction or two.
func (n *mpiNode) windows(
	ctx context.Context, r *mpiResult, directions int, window func([]*mpi.Request) error,
) error {
	r.Window = mpiWindow
	r.Iters = max(1, r.Iters/mpiWindow)
	requests := make([]*mpi.Request, mpiWindow)
	begun := time.Now()
	for i := -r.warmUp(); i < r.Iters; i++ {
		if i == 0 {
			begun = time.Now()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := window(requests); err != nil {
			return err
		}
	}
	r.recordRates(int64(directions*r.Iters*mpiWindow), time.Since(begun))
	return nil
}

// put is osu_put_latency's loop: in an epoch of a lock, a flush behind each Put.
func (n *mpiNode) put(ctx context.Context, r *mpiResult) error {
	window := make([]byte, r.SizeBytes)
	v, err := mpi.NewWin(ctx, n.c, window)
	if err != nil {
		return err
	}
	if n.c.Rank() == 0 {
		if err := n.puts(ctx, r, v); err != nil {
			return err
		}
	}
	if err := v.Free(ctx); err != nil || n.c.Rank() != 1 {
		return err
	}
	return n.compare(0, window)
}

func (n *mpiNode) puts(ctx context.Context, r *mpiResult, v *mpi.Win[byte]) error {
	data := pattern(0, r.SizeBytes)
	if err := v.Lock(ctx, 1, mpi.Shared); err != nil {
		return err
	}
	h, took, err := timed(r.warmUp(), r.Iters, 1, func() error {
		if err := v.Put(ctx, data, 1, 0); err != nil {
			return err
		}
		return v.Flush(ctx, 1)
	}, unchecked)
	if err != nil {
		return err
	}
	r.record(h)
	r.recordRates(int64(r.Iters), took)
	return v.Unlock(ctx, 1)
}

// allreduce is osu_allreduce's loop.
func (n *mpiNode) allreduce(ctx context.Context, r *mpiResult) error {
	data, sum := make([]float32, r.SizeBytes/4), make([]float32, r.SizeBytes/4)
	for i := range data {
		data[i] = float32(i%1000 + n.c.Rank())
	}
	err := n.collective(ctx, r, func() error { return mpi.Allreduce(ctx, n.c, data, sum, mpi.Sum) })
	size := n.c.Size()
	for i, got := range sum {
		if want := float32(i%1000*size + size*(size-1)/2); err == nil && got != want {
			err = fmt.Errorf("element %d of the sum is %g, want %g", i, got, want)
		}
	}
	return err
}

// alltoall is osu_alltoall's loop.
func (n *mpiNode) alltoall(ctx context.Context, r *mpiResult) error {
	data := bytes.Repeat(pattern(n.c.Rank(), r.SizeBytes), n.c.Size())
	result := make([]byte, len(data))
	if err := n.collective(ctx, r, func() error { return mpi.Alltoall(ctx, n.c, data, result) }); err != nil {
		return err
	}
	return n.compareAll(result, r.SizeBytes)
}

// allgather is osu_allgather's loop.
func (n *mpiNode) allgather(ctx context.Context, r *mpiResult) error {
	data, all := pattern(n.c.Rank(), r.SizeBytes), make([]byte, r.SizeBytes*n.c.Size())
	if err := n.collective(ctx, r, func() error { return mpi.Allgather(ctx, n.c, data, all) }); err != nil {
		return err
	}
	return n.compareAll(all, r.SizeBytes)
}

// bcast is osu_bcast's loop.
func (n *mpiNode) bcast(ctx context.Context, r *mpiResult) error {
	buf := make([]byte, r.SizeBytes)
	if n.c.Rank() == 0 {
		buf = pattern(0, r.SizeBytes)
	}
	if err := n.collective(ctx, r, func() error { return mpi.Bcast(ctx, n.c, buf, 0) }); err != nil {
		return err
	}
	return n.compare(0, buf)
}

// barrier is osu_barrier's loop.
func (n *mpiNode) barrier(ctx context.Context, r *mpiResult) error {
	return n.collective(ctx, r, func() error { return n.c.Barrier(ctx) })
}

// collective takes the time of calls, with a barrier after each, unless they are barriers; and what
// all ranks' means are.
func (n *mpiNode) collective(ctx context.Context, r *mpiResult, call func() error) error {
	behind := unchecked
	if r.SizeBytes > 0 {
		behind = func() error { return n.c.Barrier(ctx) }
	}
	h, _, err := timed(r.warmUp(), r.Iters, 1, call, behind)
	if err != nil {
		return err
	}
	r.record(h)
	mean := []float64{r.MeanUS}
	for _, of := range []struct {
		op mpi.Op[float64]
		to *float64
	}{{mpi.Sum[float64], &r.MeanUS}, {mpi.Min[float64], &r.MinUS}, {mpi.Max[float64], &r.MaxUS}} {
		got := make([]float64, 1)
		if err := mpi.Allreduce(ctx, n.c, mean, got, of.op); err != nil {
			return err
		}
		*of.to = got[0]
	}
	r.MeanUS /= float64(n.c.Size())
	return nil
}
