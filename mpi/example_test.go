package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/mpi"
)

// inProcesses runs a program in n ranks of this process. Programs have one in each process, on a
// link of the machine: see examples/first.
func inProcesses(n int, program func(ctx context.Context, c *mpi.Comm) error) {
	eps, closeAll, err := mcdtest.Start(n, mcdtest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ranks sync.WaitGroup
	for _, ep := range eps {
		ranks.Go(func() {
			w, err := mpi.Open(ep, mpi.Config{})
			if err == nil {
				err = program(context.Background(), w.Comm())
			}
			if err != nil {
				fmt.Println(err)
				return
			}
			err = w.Comm().Barrier(context.Background())
			if err != nil && !w.Comm().Revoked() && !errors.Is(err, mcd.ErrClosed) {
				fmt.Println(err)
			}
			if err := w.Close(); err != nil {
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	if err := closeAll(); err != nil {
		fmt.Println(err)
	}
}

func ExampleSend() {
	inProcesses(2, func(ctx context.Context, c *mpi.Comm) error {
		if c.Rank() == 0 {
			return mpi.Send(ctx, c, []float64{1, 2, 3}, 1, 7)
		}
		buf := make([]float64, 10)
		s, err := mpi.Recv(ctx, c, buf, mpi.AnySource, 7)
		fmt.Println(buf[:mpi.Count[float64](s)], "of rank", s.Source)
		return err
	})
	// Output: [1 2 3] of rank 0
}

// A ring of ranks, each of which sends to the next one. The receive is posted first, so that a long
// message is written into place.
func ExampleIrecv() {
	inProcesses(3, func(ctx context.Context, c *mpi.Comm) error {
		left, right := (c.Rank()+2)%3, (c.Rank()+1)%3
		buf := make([]int, 1)
		r := mpi.Irecv(c, buf, left, 0)
		if err := mpi.Send(ctx, c, []int{c.Rank()}, right, 0); err != nil {
			return err
		}
		_, err := r.Wait(ctx)
		if c.Rank() == 0 {
			fmt.Println(buf)
		}
		return err
	})
	// Output: [2]
}

func ExampleAllreduce() {
	inProcesses(4, func(ctx context.Context, c *mpi.Comm) error {
		mine, sum := []int{c.Rank(), 1}, make([]int, 2)
		err := mpi.Allreduce(ctx, c, mine, sum, mpi.Sum)
		if c.Rank() == 3 {
			fmt.Println(sum)
		}
		return err
	})
	// Output: [6 4]
}

func ExampleAlgorithms() {
	for _, a := range mpi.Algorithms() {
		crowd := map[bool]string{true: ", in a crowd"}[a.Crowded]
		fmt.Printf("%-9s from %d processes, %5d bytes on%s: %s\n", a.Operation, a.Processes, a.From, crowd, a.Name)
	}
	// Output:
	// allreduce from 0 processes,     0 bytes on: recursive doubling
	// allreduce from 2 processes,     0 bytes on: multicast by each
	// allreduce from 9 processes,     0 bytes on: recursive doubling
	// allreduce from 8 processes,     0 bytes on, in a crowd: multicast
	// allreduce from 0 processes, 32768 bytes on: halving and doubling
	// allgather from 0 processes,     0 bytes on: dissemination
	// allgather from 2 processes,     0 bytes on: multicast by each
	// allgather from 9 processes,     0 bytes on: dissemination
	// allgather from 8 processes,     0 bytes on, in a crowd: multicast
	// allgather from 0 processes,  4096 bytes on: ring
	// bcast     from 0 processes,     0 bytes on: binomial tree
	// bcast     from 2 processes,     0 bytes on: multicast
	// alltoall  from 0 processes,     0 bytes on: scattered
	// alltoall  from 8 processes,     0 bytes on: store and forward
	// alltoall  from 0 processes,   256 bytes on: scattered
}

// What 32 processes have together fits a frame if it is 8 bytes of each, and not if it is 64.
func ExampleChoose() {
	for _, crowded := range []bool{false, true} {
		for _, bytes := range []int{8, 64} {
			a := mpi.Choose(mpi.Algorithms(), "allgather", 32, bytes, crowded)
			fmt.Printf("%2d bytes, crowded %-5v: %s\n", bytes, crowded, a.Name)
		}
	}
	// Output:
	//  8 bytes, crowded false: dissemination
	// 64 bytes, crowded false: dissemination
	//  8 bytes, crowded true : multicast
	// 64 bytes, crowded true : dissemination
}

// The ranks of each half of a world have a communicator of their own.
func ExampleComm_Split() {
	inProcesses(4, func(ctx context.Context, c *mpi.Comm) error {
		half, err := c.Split(ctx, c.Rank()/2, 0)
		if err != nil {
			return err
		}
		ranks := make([]int, 2)
		err = mpi.Allgather(ctx, half, []int{c.Rank()}, ranks)
		if c.Rank() == 3 {
			fmt.Println(ranks)
		}
		return err
	})
	// Output: [2 3]
}

// Ranks draw numbers from a counter that is in the memory of rank 0, which does nothing for it.
func ExampleWin() {
	inProcesses(4, func(ctx context.Context, c *mpi.Comm) error {
		var counter []int64
		if c.Rank() == 0 {
			counter = make([]int64, 1)
		}
		w, err := mpi.NewWin(ctx, c, counter)
		if err != nil {
			return err
		}
		if err := w.Lock(ctx, 0, mpi.Shared); err != nil {
			return err
		}
		for range 10 {
			if _, err := w.FetchAndOp(ctx, 1, 0, 0, mpi.Add); err != nil { // the number of the next task
				return err
			}
		}
		if err := w.Unlock(ctx, 0); err != nil {
			return err
		}
		err = w.Free(ctx) // when all have come this far
		if c.Rank() == 0 {
			fmt.Println("numbers drawn:", counter[0])
		}
		return err
	})
	// Output: numbers drawn: 40
}

// Each rank has a row of cells, with a copy of its neighbours' last ones at both ends: a halo, which
// the neighbours write.
func ExampleWin_Put() {
	inProcesses(3, func(ctx context.Context, c *mpi.Comm) error {
		row := []float64{0, float64(10 * c.Rank()), float64(10*c.Rank() + 1), 0}
		w, err := mpi.NewWin(ctx, c, row)
		if err != nil {
			return err
		}
		left, right := (c.Rank()+2)%3, (c.Rank()+1)%3
		err = errors.Join(
			w.Fence(ctx),
			w.Put(ctx, row[1:2], left, 3),
			w.Put(ctx, row[2:3], right, 0),
			w.Fence(ctx),
		)
		if c.Rank() == 1 {
			fmt.Println(row)
		}
		return errors.Join(err, w.Free(ctx))
	})
	// Output: [1 10 11 20]
}

// A process dies in the middle of a loop. The others come back, agree that a step has failed, and go
// on without it.
func ExampleComm_Shrink() {
	inProcesses(3, func(ctx context.Context, c *mpi.Comm) error {
		sum, me := make([]int, 1), c.Rank()
		for step := 0; step < 3; {
			if step == 1 && me == 2 {
				return c.World().Close() // it is gone
			}
			done := uint64(1)
			if err := mpi.Allreduce(ctx, c, []int{1}, sum, mpi.Sum); err != nil {
				c.Revoke() // so that nobody waits for this one in vain
				done = 0
			}
			if done, err := c.Agree(ctx, done); err == nil && done == 1 {
				step++
				continue
			}
			c.Revoke()
			smaller, err := c.Shrink(ctx)
			if err != nil {
				return err
			}
			c = smaller
		}
		if me == 0 {
			fmt.Println(sum[0], "processes have done the last step")
		}
		return nil
	})
	// Output: 2 processes have done the last step
}
