package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// Every second element of one process goes into a column of another one, by all ways to send and to
// receive, whichever is first, in one piece of memory or in many.
func TestLayout_Messages(t *testing.T) {
	const rows, columns = 700, 3
	column := mpi.Vector(rows, 1, columns, mpi.Single[int32]()).Resized(0, 1)
	every := mpi.Vector(rows, 1, 2, mpi.Single[int32]())
	for _, receiveFirst := range []bool{false, true} {
		bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			ctx := t.Context()
			if c.Rank() == 0 {
				data := make([]int32, 2*rows)
				for k := range data {
					data[k] = int32(k)
				}
				if receiveFirst {
					must(t, c.Barrier(ctx))
				}
				must(t, every.Send(ctx, c, data, 1, 0))
				_, err := mpi.Contiguous(2, mpi.Single[int32]()).Isend(c, data, 1, 1).Wait(ctx)
				must(t, err)
				p := every.SendInit(c, data, 1, 2)
				for k := range 2 {
					data[2] = int32(100 + k)
					must(t, p.Start())
					_, err = p.Wait(ctx)
					must(t, err)
				}
				return
			}
			matrix := make([]int32, rows*columns)
			r := column.Irecv(c, matrix[1:], 0, 1)
			if receiveFirst {
				must(t, c.Barrier(ctx))
			}
			s, err := column.Recv(ctx, c, matrix, 0, 0)
			must(t, err)
			_, err = r.Wait(ctx)
			must(t, err)
			if got := mpi.Count[int32](s); got != rows {
				t.Errorf("%d elements were received", got)
			}
			if got, want := matrix[:3*columns], []int32{0, 0, 0, 2, 1, 0, 4, 0, 0}; !slices.Equal(got, want) {
				t.Errorf("the first rows are %v, want %v", got, want)
			}
			if got, want := matrix[(rows-1)*columns:], []int32{2 * (rows - 1), 0, 0}; !slices.Equal(got, want) {
				t.Errorf("the last row is %v, want %v", got, want)
			}
			p := column.RecvInit(c, matrix[2:], 0, 2)
			for k := range int32(2) {
				must(t, p.Start())
				_, err = p.Wait(ctx)
				must(t, err)
				if matrix[columns+2] != 100+k {
					t.Errorf("start %d: received %d", k, matrix[columns+2])
				}
			}
		})
	}
}

// A message that is too long leaves all as it was, and one that is shorter what it does not have.
func TestLayout_OtherLengths(t *testing.T) {
	pairs := mpi.Vector(2, 1, 2, mpi.Single[int64]())
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx := t.Context()
		if c.Rank() == 0 {
			must(t, mpi.Send(ctx, c, []int64{1, 2, 3}, 1, 0))
			must(t, mpi.Send(ctx, c, []int64{1}, 1, 1))
			return
		}
		buf := []int64{7, 8, 9}
		if _, err := pairs.Recv(ctx, c, buf, 0, 0); !errors.Is(err, mpi.ErrTruncate) || buf[0] != 7 || buf[2] != 9 {
			t.Errorf("a long one: %v, %v", err, buf)
		}
		s, err := pairs.Recv(ctx, c, buf, 0, 1)
		if must(t, err); s.Bytes() != 8 || !slices.Equal(buf, []int64{1, 8, 9}) {
			t.Errorf("a short one: %d bytes, %v", s.Bytes(), buf)
		}
	})
}

// What reaches beyond the slice is refused before anything is sent.
func TestLayout_Refused(t *testing.T) {
	two := mpi.Vector(2, 1, 2, mpi.Single[int64]())
	four := mpi.Contiguous(2, two) // of 6 elements
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, data := t.Context(), make([]int64, 5)
		before := mpi.Indexed([]int{1}, []int{-1}, mpi.Single[int64]())
		var none mpi.Layout[int64]
		_, receive := four.Recv(ctx, c, data, 0, 0)
		for k, err := range []error{
			four.Send(ctx, c, data, 0, 0), receive, four.Pack(make([]int64, 4), data), two.Pack(data[:1], data),
			before.Send(ctx, c, data, 0, 0),
			mpi.Contiguous(-1, two).Send(ctx, c, data, 0, 0), none.Send(ctx, c, data, 0, 0),
			two.Unpack(data[:2], data),
			mpi.Vector(math.MaxInt>>4, 1, 0, mpi.Single[int64]()).Send(ctx, c, data, 0, 0), // more bytes than there is memory
		} {
			if !errors.Is(err, mpi.ErrLayout) {
				t.Errorf("%d: %v", k, err)
			}
		}
		if n := c.World().Counters().Sent; n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
}

// Two ranks have a matrix each. Rank 1 receives the first column of rank 0 as its last one.
func ExampleVector() {
	const rows, columns = 2, 3
	column := mpi.Vector(rows, 1, columns, mpi.Single[float64]())
	inProcesses(2, func(ctx context.Context, c *mpi.Comm) error {
		matrix := []float64{1, 2, 3, 4, 5, 6}
		if c.Rank() == 0 {
			return column.Send(ctx, c, matrix, 1, 0)
		}
		_, err := column.Recv(ctx, c, matrix[columns-1:], 0, 0)
		fmt.Println(matrix)
		return err
	})
	// Output: [1 2 1 4 5 4]
}

// A block of a matrix is packed, with what else goes in one message.
func ExampleLayout_Pack() {
	matrix := []int{11, 12, 13, 21, 22, 23, 31, 32, 33}
	block := mpi.Subarray([]int{3, 3}, []int{2, 2}, []int{1, 1}, mpi.Single[int]())
	packed := make([]int, 5)
	packed[0] = 7 // a number of the program's
	err := block.Pack(packed[1:], matrix)
	fmt.Println(packed, err)
	// Output: [7 22 23 32 33] <nil>
}
