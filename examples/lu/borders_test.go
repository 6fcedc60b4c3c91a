package main

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// onRanks runs a part of the benchmark on each rank, and returns what it takes.
func onRanks(
	t *testing.T, ranks, edge int, anySource bool, do func(context.Context, *solver) error,
) (got npb.Timed) {
	t.Helper()
	got, err := npb.Part(t.Context(), ranks, func(c *mpi.Comm) (func(context.Context) error, error) {
		s, err := newSolver(c, problem{edge: edge, step: 1e-3}, anySource)
		if err != nil {
			return nil, err
		}
		s.set(initial)
		return func(ctx context.Context) error { return do(ctx, s) }, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Messages are those of LU/ssor.f90. They come to those of the paper's rates and times without a
// step before those that are timed: NPB 2.3 has none, by that count.
func TestMBCF_3_3_MessagesOfLU(t *testing.T) {
	const edge, steps = 33, 300 // class W
	for _, ranks := range []int{1, 2, 4, 8} {
		step := onRanks(t, ranks, edge, false, func(ctx context.Context, s *solver) error {
			return s.advance(ctx, false)
		})
		messages, bytes := messagesOfStep(edge, ranks)
		if step.Messages != messages || step.Bytes != bytes {
			t.Errorf("%d ranks: %d messages of %d bytes a step; ssor.f90 has %d of %d",
				ranks, step.Messages, step.Bytes, messages, bytes)
		}
		if ranks != 8 {
			continue
		}
		once := onRanks(t, ranks, edge, false, func(ctx context.Context, s *solver) error {
			return s.rate(ctx, s.r)
		}) // before the steps, of the solution and of the beginning
		all := float64(steps*step.Messages + 2*once.Messages)
		allBytes := float64(steps*step.Bytes + 2*once.Bytes)
		const paperMessages, paperBytes = 1199 * 160.36, 1.89e6 * 160.36 // rates of table 3 x time of table 8
		if math.Abs(all/paperMessages-1) > .002 || math.Abs(allBytes/paperBytes-1) > .002 {
			t.Errorf("%.0f messages of %.0f bytes; the paper has %.0f of %.0f", all, allBytes, paperMessages, paperBytes)
		}
	}
}

// messagesOfStep counts what a step of ssor.f90 sends: each pair of neighbours exchanges faces of
// two points by exchange_3, and a line of each plane inside the cube in each sweep by exchange_1.
func messagesOfStep(edge, ranks int) (messages, bytes uint64) {
	cut := map[int][2]int{1: {1, 1}, 2: {2, 1}, 4: {2, 2}, 8: {4, 2}}[ranks]
	pairs := (cut[0]-1)*cut[1] + (cut[1]-1)*cut[0]
	cuts := cut[0] - 1 + cut[1] - 1
	inside := edge - 2
	messages = uint64(2*inside*pairs + 2*pairs)
	bytes = uint64(2*inside*cuts*inside*5*8 + 2*cuts*edge*edge*2*5*8)
	return messages, bytes
}

// A face that is awaited is written into by its sender if the receive names its source, and not if
// it does not.
func TestMBCF_3_3_ReceivesOfAnySource(t *testing.T) {
	const face = 2 * 12 * 12 * 5 * 8
	for anySource, want := range map[bool]uint64{false: face, true: 0} {
		got := onRanks(t, 2, 12, anySource, func(ctx context.Context, s *solver) error {
			ready := []byte{}
			last, behind := s.borders.beside(s.grid.block(), 0, up, border)
			if s.c.Rank() == 0 {
				_, err := mpi.Recv(ctx, s.c, ready, 1, 99) // behind the offer
				return errors.Join(err, s.borders.send(ctx, s.u, last, 1, tag(0, up)))
			}
			receive := s.borders.expect(behind, 0, tag(0, up))
			err := mpi.Send(ctx, s.c, ready, 0, 99)
			_, failed := receive.Wait(ctx)
			return errors.Join(err, failed)
		})
		if got.Bytes != face || got.Written != want {
			t.Errorf("any source %v: %d of %d bytes written, want %d", anySource, got.Written, got.Bytes, want)
		}
	}
}

// Each rank has the points beside its block in its border: those of the ranks that have them.
func TestBorders_Faces(t *testing.T) {
	const edge = 13
	number := func(place [axes]float64) (u state) {
		copy(u[:], place[:])
		return u
	}
	for _, ranks := range []int{1, 2, 4, 8, 16} {
		onRanks(t, ranks, edge, false, func(ctx context.Context, s *solver) error {
			s.set(func(place [axes]float64, _ bool) state { return number(place) })
			for axis := range axes {
				if err := s.borders.faces(ctx, s.u, axis); err != nil {
					return err
				}
				block := s.grid.block()
				first, end := block.first[axis], block.end[axis]
				for direction, part := range [2]box{
					down: block.slab(axis, first-border, first), up: block.slab(axis, end, end+border),
				} {
					if s.grid.neighbours[axis][direction] == none {
						continue
					}
					s.u.each(part, func(at [axes]int, u *state) {
						if place, _ := s.grid.place(at); *u != number(place) {
							t.Errorf("%d ranks: rank %d has %v at %v, want %v", ranks, s.c.Rank(), *u, at, place)
						}
					})
				}
			}
			return nil
		})
	}
}
