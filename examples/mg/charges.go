package main

import (
	"context"
	"slices"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// charges of each sign.
const charges = 10

// candidate is a point of this rank's block, with its random number.
type candidate struct {
	number float64
	at     [axes]int // in the block
}

// charge sets v: of the random numbers of all points, the ten largest have a charge of 1, the ten
// smallest one of -1, and all others none.
func (s *solver) charge(ctx context.Context) error {
	largest, smallest := s.candidates()
	if err := s.c.Barrier(ctx); err != nil {
		return err
	}
	s.v.clear()
	for range charges {
		var err error
		if largest, err = s.place(ctx, largest, 1, mpi.Max); err != nil {
			return err
		}
		if smallest, err = s.place(ctx, smallest, -1, mpi.Min); err != nil {
			return err
		}
	}
	if err := s.c.Barrier(ctx); err != nil {
		return err
	}
	return s.borders.exchange(ctx, &s.levels[s.finest()], s.v)
}

// place sets a charge at the best of all ranks' first candidates, and returns those that this rank
// has left. All ranks learn which rank has it and where, as in NPB, though nobody asks.
func (s *solver) place(
	ctx context.Context, left []candidate, charge float64, best mpi.Op[float64],
) ([]candidate, error) {
	own := left[0]
	number := []float64{own.number}
	if err := mpi.Allreduce(ctx, s.c, number, number, best); err != nil {
		return nil, err
	}
	where := make([]int32, 1+axes)
	if number[0] == own.number {
		where[0] = int32(s.c.Rank())
		for axis, at := range own.at {
			where[1+axis] = int32(s.grid.first(axis, s.edge) + at)
		}
		s.v.line(own.at[1], own.at[2])[own.at[0]] = charge
		left = left[1:]
	}
	return left, mpi.Allreduce(ctx, s.c, where, where, mpi.Max)
}

// candidates returns those points of this rank that have the largest and the smallest numbers, the
// best first, and one more than there are charges.
func (s *solver) candidates() (largest, smallest []candidate) {
	for z := 1; z < s.v.size[2]-1; z++ {
		for y := 1; y < s.v.size[1]-1; y++ {
			random := npb.NewRandom(npb.Seed)
			random.Skip(uint64(s.index(y-1, z-1)))
			for x := 1; x < s.v.size[0]-1; x++ {
				c := candidate{random.Float64(), [axes]int{x, y, z}}
				if len(largest) <= charges || c.number > largest[charges].number {
					largest = insert(largest, c, func(a, b float64) bool { return a > b })
				}
				if len(smallest) <= charges || c.number < smallest[charges].number {
					smallest = insert(smallest, c, func(a, b float64) bool { return a < b })
				}
			}
		}
	}
	return largest, smallest
}

// index returns which number of the sequence is that of the first point of a line.
func (s *solver) index(y, z int) int {
	first := func(axis int) int { return s.grid.first(axis, s.edge) }
	return first(0) + s.edge*(first(1)+y+s.edge*(first(2)+z))
}

// insert puts a candidate before the first one that it is better than, and forgets the last one if
// there are too many.
func insert(all []candidate, c candidate, better func(a, b float64) bool) []candidate {
	at := slices.IndexFunc(all, func(other candidate) bool { return better(c.number, other.number) })
	if at < 0 {
		at = len(all)
	}
	all = slices.Insert(all, at, c)
	return all[:min(len(all), charges+1)]
}
