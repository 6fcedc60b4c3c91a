package main

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/rawlane/rawlane/mpi"
)

// relaxation is the factor of successive over-relaxation.
const relaxation = 1.2

// solver is a rank's part.
type solver struct {
	c       *mpi.Comm
	grid    grid
	scheme  scheme
	borders *borders
	u       *field // the gas
	r       *field // how fast it changes; in a step the change itself
	forcing *field // what keeps the solution as it is
	line    line
}

func newSolver(c *mpi.Comm, p problem, anySource bool) (*solver, error) {
	g, err := newGrid(c.Rank(), c.Size(), p.edge)
	if err != nil {
		return nil, err
	}
	longest := p.edge + 2*border
	s := &solver{
		c: c, grid: g, scheme: newScheme(p.edge, p.step),
		u: newField(g.size), r: newField(g.size), forcing: newField(g.size),
		line: line{make([]state, longest), make([]state, longest)},
	}
	s.borders = newBorders(c, &s.grid, anySource)
	return s, nil
}

// prepare makes the problem. A step that is not timed comes before, so that all memory is in use
// afterwards.
func (s *solver) prepare(ctx context.Context) error {
	s.set(func(place [axes]float64, _ bool) state { return exact(place) })
	if err := s.rate(ctx, s.forcing); err != nil {
		return err
	}
	for i := range s.forcing.states {
		f := &s.forcing.states[i]
		f.add(-2, f)
	}
	s.set(initial)
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.advance(ctx, false); err != nil {
		return err
	}
	s.set(initial)
	return s.begin(ctx)
}

// set sets the gas at each place.
func (s *solver) set(to func(place [axes]float64, onSurface bool) state) {
	s.u.each(s.grid.block(), func(at [axes]int, u *state) { *u = to(s.grid.place(at)) })
}

// begin computes the first residual, and as NPB does its norm.
func (s *solver) begin(ctx context.Context) error {
	if err := s.residual(ctx); err != nil {
		return err
	}
	_, err := s.norm(ctx, s.r)
	return err
}

// run goes on for some steps, and returns the norm of the residual.
func (s *solver) run(ctx context.Context, steps int, out io.Writer) (residual state, err error) {
	for i := 1; i <= steps; i++ {
		if i == 1 || i == steps || i%20 == 0 {
			fmt.Fprintf(out, " Time step %4d\n", i)
		}
		if err := s.advance(ctx, i == steps); err != nil {
			return residual, err
		}
	}
	return s.norm(ctx, s.r)
}

// advance goes on for a step. Of the last one NPB has the norm of the change as well: its message
// is sent, and nobody looks at it.
func (s *solver) advance(ctx context.Context, last bool) error {
	for _, direction := range []int{up, down} {
		if err := s.sweep(ctx, direction); err != nil {
			return err
		}
	}
	s.u.each(s.grid.inside(), func(at [axes]int, u *state) {
		u.add(s.scheme.step/(relaxation*(2-relaxation)), &s.r.states[s.r.index(at)])
	})
	if last {
		if _, err := s.norm(ctx, s.r); err != nil {
			return err
		}
	}
	return s.residual(ctx)
}

// sweep goes through all points in a direction, with what the neighbours before this rank have.
func (s *solver) sweep(ctx context.Context, direction int) error {
	inside := s.grid.inside()
	for z := range order(inside, 2, direction) {
		if err := s.borders.await(ctx, s.r, z, direction); err != nil {
			return err
		}
		for y := range order(inside, 1, direction) {
			for x := range order(inside, 0, direction) {
				s.relax(s.u.index([axes]int{x, y, z}), direction)
			}
		}
		if err := s.borders.pass(ctx, s.r, z, direction); err != nil {
			return err
		}
	}
	return nil
}

// order returns the places of a box along an axis, as a sweep in a direction comes by.
func order(b box, axis, direction int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range b.end[axis] - b.first[axis] {
			at := b.first[axis] + i
			if direction == down {
				at = b.end[axis] - 1 - i
			}
			if !yield(at) {
				return
			}
		}
	}
}

// relax computes a point's change from those of the points before it. A sweep up solves the lower
// triangle of the system of equations, and one down the upper one.
func (s *solver) relax(at, direction int) {
	u, r := &s.u.states[at], &s.r.states[at]
	var before state
	for axis, stride := range s.u.stride {
		neighbour := at - stride
		if direction == down {
			neighbour = at + stride
		}
		s.scheme.coupled(&before, axis, direction, &s.u.states[neighbour], &s.r.states[neighbour])
	}
	if direction == down {
		change := s.scheme.solved(u, &before)
		r.add(-relaxation, &change)
		return
	}
	r.add(-relaxation, &before)
	*r = s.scheme.solved(u, r)
}

// residual computes how fast the gas changes.
func (s *solver) residual(ctx context.Context) error {
	copy(s.r.states, s.forcing.states)
	return s.rate(ctx, s.r)
}

// rate adds to a field how fast what goes along each axis changes the gas.
func (s *solver) rate(ctx context.Context, to *field) error {
	for axis := range axes {
		if err := s.borders.faces(ctx, s.u, axis); err != nil {
			return err
		}
		s.scheme.rate(&s.grid, &s.line, axis, s.u, to)
	}
	return nil
}
