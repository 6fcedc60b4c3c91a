package mpi_test

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/rawlane/rawlane/mpi"
)

// livesOperations are the steps of livesModel: all processes of a communicator do one together. rng
// is alike on all.
var livesOperations = []struct {
	name string
	do   func(m *livesModel, ctx context.Context, c *mpi.Comm, rng *rand.Rand) error
}{
	{"Barrier", func(_ *livesModel, ctx context.Context, c *mpi.Comm, _ *rand.Rand) error { return c.Barrier(ctx) }},
	{"Allreduce", (*livesModel).allreduce},
	{"Bcast", (*livesModel).bcast},
	{"Alltoall", (*livesModel).alltoall},
	{"Gather", (*livesModel).gather},
	{"Sendrecv", (*livesModel).sendrecv},
	{"messages to one", (*livesModel).anySource},
	{"requests", (*livesModel).requests},
	{"Split", (*livesModel).split},
	{"Put", (*livesModel).put},
	{"FetchAndOp", (*livesModel).fetchAndOp},
}

func (m *livesModel) allreduce(ctx context.Context, c *mpi.Comm, _ *rand.Rand) error {
	sum := make([]int, 1)
	err := mpi.Allreduce(ctx, c, []int{1 << c.Rank()}, sum, mpi.Sum)
	if err == nil && sum[0] != 1<<c.Size()-1 {
		m.Fail("rank %d of %d: the sum is %b", c.Rank(), c.Size(), sum[0])
	}
	return err
}

func (m *livesModel) bcast(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	root, last := rootOf(c, rng), length(rng)
	buf := make([]int32, 1+last)
	if c.Rank() == root {
		buf[0], buf[last] = int32(root+1), int32(root+1)
	}
	err := mpi.Bcast(ctx, c, buf, root)
	if err == nil && (buf[0] != int32(root+1) || buf[last] != int32(root+1)) {
		m.Fail("rank %d of %d: rank %d has broadcast %d and %d", c.Rank(), c.Size(), root, buf[0], buf[last])
	}
	return err
}

func (m *livesModel) alltoall(ctx context.Context, c *mpi.Comm, _ *rand.Rand) error {
	data, result := make([]int32, c.Size()), make([]int32, c.Size())
	for to := range data {
		data[to] = int32(100*c.Rank() + to)
	}
	err := mpi.Alltoall(ctx, c, data, result)
	for from, got := range result {
		if err == nil && got != int32(100*from+c.Rank()) {
			m.Fail("rank %d of %d: %d came from %d", c.Rank(), c.Size(), got, from)
		}
	}
	return err
}

func (m *livesModel) gather(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	root := rootOf(c, rng)
	all := make([]int32, 2*c.Size())
	err := mpi.Gather(ctx, c, []int32{int32(c.Rank()), int32(c.Size())}, all, root)
	for from := range c.Size() {
		if err == nil && c.Rank() == root && (all[2*from] != int32(from) || all[2*from+1] != int32(c.Size())) {
			m.Fail("rank %d of %d has gathered %v", root, c.Size(), all)
		}
	}
	return err
}

func (m *livesModel) sendrecv(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	left, right := neighbours(c)
	last := length(rng)
	data, buf := make([]int32, 1+last), make([]int32, 1+last)
	data[last] = int32(c.Rank() + 1)
	_, err := mpi.Sendrecv(ctx, c, data, right, 5, buf, left, 5)
	if err == nil && buf[last] != int32(left+1) {
		m.Fail("rank %d of %d: %d came from %d", c.Rank(), c.Size(), buf[last], left)
	}
	return err
}

// anySource has all send to one, which does not know who comes first, and answers each.
func (m *livesModel) anySource(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	root := rootOf(c, rng)
	buf := make([]int32, 1+length(rng))
	if c.Rank() != root {
		buf[0] = int32(c.Rank())
		if err := mpi.Ssend(ctx, c, buf, root, 6); err != nil {
			return err
		}
		return second(mpi.Recv(ctx, c, buf[:1], root, 7))
	}
	for range c.Size() - 1 {
		s, err := mpi.Recv(ctx, c, buf, mpi.AnySource, 6)
		if err == nil && int(buf[0]) != s.Source {
			m.Fail("rank %d of %d: %d came from %d", root, c.Size(), buf[0], s.Source)
		}
		if err == nil {
			err = mpi.Send(ctx, c, buf[:1], s.Source, 7)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// requests has several operations under way at a time.
func (m *livesModel) requests(ctx context.Context, c *mpi.Comm, _ *rand.Rand) error {
	left, right := neighbours(c)
	most, got := make([]int32, 1), make([]int32, 1)
	err := mpi.WaitAll(ctx,
		mpi.Irecv(c, got, left, 8),
		c.Ibarrier(),
		mpi.Iallreduce(c, []int32{int32(c.Rank())}, most, mpi.Max),
		mpi.Isend(c, []int32{int32(c.Rank())}, right, 8),
	)
	if err == nil && (int(most[0]) != c.Size()-1 || int(got[0]) != left) {
		m.Fail("rank %d of %d: the highest rank is %d, and rank %d is %d", c.Rank(), c.Size(), most[0], left, got[0])
	}
	return err
}

// split makes communicators of the even and of the odd ranks, and uses them.
func (m *livesModel) split(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	half, err := c.Split(ctx, c.Rank()%2, 0)
	if err != nil {
		return err
	}
	if err = m.allreduce(ctx, half, rng); err != nil {
		half.Revoke()
	}
	return errors.Join(err, half.Free(ctx))
}

// put has each process write into its neighbour's memory.
func (m *livesModel) put(ctx context.Context, c *mpi.Comm, _ *rand.Rand) error {
	left, right := neighbours(c)
	memory := make([]int64, 2)
	w, err := mpi.NewWin(ctx, c, memory)
	if err != nil {
		return err
	}
	err = w.Fence(ctx)
	if err == nil {
		err = w.Put(ctx, []int64{int64(c.Rank() + 1)}, right, 1)
	}
	if err == nil {
		err = w.Fence(ctx)
	}
	if err == nil && memory[1] != int64(left+1) {
		m.Fail("rank %d of %d: %d is there, of rank %d", c.Rank(), c.Size(), memory[1], left)
	}
	if err != nil {
		c.Revoke()
	}
	return errors.Join(err, w.Free(ctx))
}

// fetchAndOp has all take a number at one of them.
func (m *livesModel) fetchAndOp(ctx context.Context, c *mpi.Comm, rng *rand.Rand) error {
	root := rootOf(c, rng)
	memory := make([]int64, 1)
	w, err := mpi.NewWin(ctx, c, memory)
	if err != nil {
		return err
	}
	mode := []mpi.LockMode{mpi.Shared, mpi.Exclusive}[rng.IntN(2)]
	if err = w.Lock(ctx, root, mode); err == nil {
		var got int64
		got, err = w.FetchAndOp(ctx, 1, root, 0, mpi.Add)
		if err == nil && (got < 0 || got >= int64(c.Size())) {
			m.Fail("rank %d of %d: took %d", c.Rank(), c.Size(), got)
		}
		err = errors.Join(err, w.Unlock(ctx, root))
	}
	if err == nil {
		err = c.Barrier(ctx)
	}
	if err == nil && c.Rank() == root && memory[0] != int64(c.Size()) {
		m.Fail("rank %d of %d: %d were taken", root, c.Size(), memory[0])
	}
	if err != nil {
		c.Revoke()
	}
	return errors.Join(err, w.Free(ctx))
}

func rootOf(c *mpi.Comm, rng *rand.Rand) int { return rng.IntN(1<<20) % c.Size() }

// length is short, or long.
func length(rng *rand.Rand) int { return rng.IntN(2) * rng.IntN(60_000) }

func neighbours(c *mpi.Comm) (left, right int) {
	return (c.Rank() + c.Size() - 1) % c.Size(), (c.Rank() + 1) % c.Size()
}
