package mpi_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// A layout has the elements that MPI says, counts them and its extent in elements, and sends them.
func TestLayout_Forms(t *testing.T) {
	one := mpi.Single[int32]()
	pair := mpi.Contiguous(2, one)
	for name, l := range map[string]struct {
		layout        mpi.Layout[int32]
		want          []int32
		lower, extent int
	}{
		"single":     {one, []int32{0}, 0, 1},
		"contiguous": {mpi.Contiguous(2, pair), []int32{0, 1, 2, 3}, 0, 4},
		"vector":     {mpi.Vector(2, 2, 3, pair), []int32{0, 1, 2, 3, 6, 7, 8, 9}, 0, 10},
		"indexed":    {mpi.Indexed([]int{1, 2}, []int{3, 0}, pair), []int32{6, 7, 0, 1, 2, 3}, 0, 8},
		"one piece":  {mpi.Indexed([]int{2}, []int{3}, one), []int32{3, 4}, 3, 2},
		"struct": {
			mpi.Struct([]int{2, 1}, []int{5, 1}, []mpi.Layout[int32]{one, pair}),
			[]int32{5, 6, 1, 2}, 1, 6,
		},
		"subarray": {
			mpi.Subarray([]int{3, 4}, []int{2, 2}, []int{1, 2}, one),
			[]int32{6, 7, 10, 11}, 0, 12,
		},
		"resized": {mpi.Contiguous(2, pair.Resized(-1, 3)), []int32{0, 1, 3, 4}, -1, 6},
		"structs with one that was resized, whose bounds count alone": {
			mpi.Contiguous(2, mpi.Struct([]int{1, 1}, []int{0, 3}, []mpi.Layout[int32]{one.Resized(0, 2), one})),
			[]int32{0, 3, 2, 5}, 0, 4,
		},
	} {
		data, packed := make([]int32, 12), make([]int32, len(l.want))
		for k := range data {
			data[k] = int32(k)
		}
		must(t, l.layout.Pack(packed, data))
		if lower, extent := l.layout.Extent(); !slices.Equal(packed, l.want) || l.layout.Size() != len(l.want) ||
			lower != l.lower || extent != l.extent {
			t.Errorf("%s: %d has %d elements from %d on, each %d behind the last one; want %d, from %d on, each %d",
				name, packed, l.layout.Size(), lower, extent, l.want, l.lower, l.extent)
		}
		bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
			got, unpacked := make([]int32, len(data)), make([]int32, len(data))
			must(t, l.layout.Send(t.Context(), c, data, 0, 0))
			must(t, second(l.layout.Recv(t.Context(), c, got, 0, 0)))
			must(t, l.layout.Unpack(unpacked, packed))
			for k := range data {
				want := int32(0)
				if slices.Contains(l.want, data[k]) {
					want = data[k]
				}
				if got[k] != want || unpacked[k] != want {
					t.Errorf("%s: element %d is %d, and unpacked %d, want %d", name, k, got[k], unpacked[k], want)
				}
			}
		})
	}
}

// A message goes to where it belongs once: the receive's memory is its caller's from then on.
func TestLayout_InPlaceOnce(t *testing.T) {
	every := mpi.Vector(2, 1, 2, mpi.Single[byte]())
	bubble(t, 1, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		buf := make([]byte, 3)
		r := every.Irecv(c, buf, 0, 0)
		must(t, every.Send(t.Context(), c, []byte{1, 2, 3}, 0, 0))
		must(t, second(r.Wait(t.Context())))
		buf[0] = 9
		must(t, second(r.Wait(t.Context())))
		if !slices.Equal(buf, []byte{9, 0, 3}) {
			t.Errorf("%d, want what was written last", buf)
		}
	})
}

// A call whose context ends has neither sent nor received, whatever comes later.
func TestLayout_EndsWithItsContext(t *testing.T) {
	every := mpi.Vector(50_000, 1, 2, mpi.Single[byte]())
	bubble(t, 2, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
		ctx, data := t.Context(), make([]byte, 100_000)
		if c.Rank() == 0 {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := every.Send(short, c, data, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("send: %v", err)
			}
			time.Sleep(time.Second)
			must(t, mpi.Send(ctx, c, []byte{7}, 1, 1))
			return
		}
		time.Sleep(1500 * time.Millisecond)
		if _, err := mpi.Recv(ctx, c, data, 0, 0); !errors.Is(err, mpi.ErrWithdrawn) {
			t.Errorf("a receive of what was not sent: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := every.Recv(short, c, data, 0, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("receive: %v", err)
		}
		must(t, second(mpi.Recv(ctx, c, data[:1], 0, 1)))
		if data[0] != 7 {
			t.Errorf("received %d", data[0])
		}
	})
}
