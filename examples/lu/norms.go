package main

import (
	"context"
	"math"

	"github.com/rawlane/rawlane/mpi"
)

// norm returns the roots of the mean squares of a field inside the cube, over all ranks.
func (s *solver) norm(ctx context.Context, f *field) (state, error) {
	return s.meanSquares(ctx, func(at [axes]int) state { return f.states[f.index(at)] })
}

// meanSquares returns the roots of the mean squares of what each point inside the cube has.
func (s *solver) meanSquares(ctx context.Context, of func(at [axes]int) state) (root state, err error) {
	s.u.each(s.grid.inside(), func(at [axes]int, _ *state) {
		for m, v := range of(at) {
			root[m] += v * v
		}
	})
	if err := mpi.Allreduce(ctx, s.c, root[:], root[:], mpi.Sum); err != nil {
		return root, err
	}
	inside := float64(s.grid.edge - 2)
	for m := range root {
		root[m] = math.Sqrt(root[m] / (inside * inside * inside))
	}
	return root, nil
}

// judge returns how far from the solution the gas is, and the integral of its pressure.
func (s *solver) judge(ctx context.Context) (off state, integral float64, err error) {
	off, err = s.meanSquares(ctx, func(at [axes]int) state {
		place, _ := s.grid.place(at)
		want := exact(place)
		want.add(-1, &s.u.states[s.u.index(at)])
		return want
	})
	if err != nil {
		return off, 0, err
	}
	sum := []float64{0}
	s.u.each(s.grid.block(), func(at [axes]int, u *state) {
		if weight := s.weight(at); weight > 0 {
			m := u.motion()
			sum[0] += weight * u.pressure(&m)
		}
	})
	err = mpi.Allreduce(ctx, s.c, sum, sum, mpi.Sum)
	edge := float64(s.grid.edge - 1)
	return off, sum[0] / (edge * edge), err
}

// weight returns what a point counts in an integral over the surface of NPB's box, whose corners
// are points inside the cube: for each of its faces the part of four squares between points that
// are on it, and meet in this one.
func (s *solver) weight(at [axes]int) (weight float64) {
	var end [axes]bool
	for axis, i := range at {
		first, last := [axes]int{1, 1, 2}[axis], s.grid.edge-1-[axes]int{1, 2, 1}[axis]
		i += s.grid.first[axis] - border
		if i < first || i > last {
			return 0
		}
		end[axis] = i == first || i == last
	}
	for face := range axes {
		if !end[face] {
			continue
		}
		part := 1.0
		for axis := range axes {
			if axis != face && end[axis] {
				part /= 2
			}
		}
		weight += part
	}
	return weight
}
