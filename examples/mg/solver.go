package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/rawlane/rawlane/mpi"
)

// solver is a rank's part: A u = v on its block of the cube.
type solver struct {
	c       *mpi.Comm
	grid    grid
	edge    int
	levels  []level  // the coarsest first
	u, r    []*field // of each level: solutions and residuals
	v       *field   // of the finest one
	sums    *sums
	borders *borders
}

// newSolver makes a rank's part for a cube. Where more than two processes along an axis make levels
// on which some have no points, receives name their source even if others do not: what a farther
// neighbour sends for the next level may be there first.
func newSolver(c *mpi.Comm, edge int, anySource bool) (*solver, error) {
	g, err := newGrid(c.Rank(), c.Size(), edge)
	if err != nil {
		return nil, err
	}
	s := &solver{c: c, grid: g, edge: edge, levels: g.levels(edge)}
	for _, l := range s.levels {
		s.u, s.r = append(s.u, newField(l.size)), append(s.r, newField(l.size))
	}
	s.v = newField(s.levels[s.finest()].size)
	s.sums = newSums(s.v.size[0])
	s.borders = newBorders(c, anySource && slices.Max(g.processes[:]) <= 2, s.v.largestFace())
	return s, nil
}

func (s *solver) finest() int { return len(s.levels) - 1 }

// prepare makes the problem. An iteration that is not timed comes before, so that all memory is in
// use afterwards.
func (s *solver) prepare(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if _, err := s.norm(ctx, s.v); err != nil {
		return err
	}
	if _, err := s.iterate(ctx, 1, io.Discard); err != nil {
		return err
	}
	return s.begin(ctx)
}

// begin sets the charges, of a solution that is zero.
func (s *solver) begin(ctx context.Context) error {
	s.u[s.finest()].clear()
	return s.charge(ctx)
}

// iterate improves the solution, and returns the norm of what is left.
func (s *solver) iterate(ctx context.Context, iterations int, out io.Writer) (float64, error) {
	finest := s.finest()
	if err := s.residual(ctx, finest, s.v); err != nil {
		return 0, err
	}
	if _, err := s.norm(ctx, s.r[finest]); err != nil {
		return 0, err
	}
	for i := 1; i <= iterations; i++ {
		if i == 1 || i == iterations || i%5 == 0 {
			fmt.Fprintf(out, "  iter %4d\n", i)
		}
		if err := s.cycle(ctx); err != nil {
			return 0, err
		}
		if err := s.residual(ctx, finest, s.v); err != nil {
			return 0, err
		}
	}
	return s.norm(ctx, s.r[finest])
}

// cycle is a V-cycle: from the residual of the finest level, down to the coarsest and back.
func (s *solver) cycle(ctx context.Context) error {
	for k := s.finest(); k > 0; k-- {
		s.sums.restrict(s.r[k], s.r[k-1])
		if err := s.borders.exchange(ctx, &s.levels[k-1], s.r[k-1]); err != nil {
			return err
		}
	}
	s.u[0].clear()
	if err := s.smooth(ctx, 0); err != nil {
		return err
	}
	for k := 1; k <= s.finest(); k++ {
		v := s.v
		if k < s.finest() { // a correction, of which the residual is what it is to make up for
			s.u[k].clear()
			v = s.r[k]
		}
		s.sums.interpolate(s.u[k-1], s.u[k])
		if err := s.borders.expand(ctx, &s.levels[k], s.u[k]); err != nil {
			return err
		}
		if err := s.residual(ctx, k, v); err != nil {
			return err
		}
		if err := s.smooth(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// residual computes what a level's solution leaves of v.
func (s *solver) residual(ctx context.Context, k int, v *field) error {
	s.sums.residual(s.u[k], v, s.r[k])
	return s.borders.exchange(ctx, &s.levels[k], s.r[k])
}

// smooth corrects a level's solution by its residual.
func (s *solver) smooth(ctx context.Context, k int) error {
	s.sums.smooth(s.r[k], s.u[k])
	return s.borders.exchange(ctx, &s.levels[k], s.u[k])
}

// norm returns the root of the mean square of a field of the finest level, over all ranks. The
// largest number is NPB's other norm: its message is sent, and nobody looks at it.
func (s *solver) norm(ctx context.Context, f *field) (float64, error) {
	sum, largest := squares(f)
	numbers := []float64{largest}
	if err := mpi.Allreduce(ctx, s.c, numbers, numbers, mpi.Max); err != nil {
		return 0, err
	}
	numbers[0] = sum
	if err := mpi.Allreduce(ctx, s.c, numbers, numbers, mpi.Sum); err != nil {
		return 0, err
	}
	points := float64(s.edge) * float64(s.edge) * float64(s.edge)
	return math.Sqrt(numbers[0] / points), nil
}
