package main

import (
	"context"
	"math"

	"github.com/rawlane/rawlane/mpi"
)

// steps of the conjugate gradient method, each time.
const steps = 25

// solver is a rank's part. Its vectors have the elements of this rank's columns alone, but for
// product and came, which have those of its rows.
type solver struct {
	c     *mpi.Comm
	shift float64
	a     *matrix

	partners     []int     // that sums are of, the farthest first
	transposed   int       // on the other side of the diagonal
	kept, given  span      // of product: what goes to transposed, and what to the last partner
	x, z         []float64 // A z = x
	r, p, q      []float64
	product      []float64 // of the block and a vector
	came         []float64 // what partners add to it
	one, another []float64 // small sums: this rank's, and a partner's
}

// newSolver makes this rank's block of the matrix.
func newSolver(c *mpi.Comm, p problem) (*solver, error) {
	g, err := newGrid(c.Rank(), c.Size())
	if err != nil {
		return nil, err
	}
	rows, columns := g.block(p.rows)
	local := func(s span) span { return span{s.first - rows.first, s.end - rows.first} }
	s := &solver{
		c: c, shift: p.shift, a: newMatrix(p, rows, columns),
		partners: g.partners(), transposed: g.transposed(), kept: local(g.kept(rows)), given: local(g.given(rows)),
		product: make([]float64, rows.len()), came: make([]float64, rows.len()),
		one: make([]float64, 1), another: make([]float64, 2),
	}
	for _, v := range []*[]float64{&s.x, &s.z, &s.r, &s.p, &s.q} {
		*v = make([]float64, columns.len())
	}
	return s, nil
}

// conjugateGradient solves A z = x, but for a residual, ||x - A z||, which it returns.
func (s *solver) conjugateGradient(ctx context.Context) (residual float64, err error) {
	clear(s.z)
	copy(s.r, s.x)
	copy(s.p, s.r)
	rho, err := s.dot(ctx, s.r, s.r)
	if err != nil {
		return 0, err
	}
	for range steps {
		if err := s.multiply(ctx, s.p, s.q); err != nil {
			return 0, err
		}
		pq, err := s.dot(ctx, s.p, s.q)
		if err != nil {
			return 0, err
		}
		alpha := rho / pq
		for i, p := range s.p {
			s.z[i] += alpha * p
			s.r[i] -= alpha * s.q[i]
		}
		before := rho
		if rho, err = s.dot(ctx, s.r, s.r); err != nil {
			return 0, err
		}
		beta := rho / before
		for i, r := range s.r {
			s.p[i] = r + beta*s.p[i]
		}
	}
	if err := s.multiply(ctx, s.z, s.q); err != nil {
		return 0, err
	}
	for i, x := range s.x {
		s.r[i] = x - s.q[i]
	}
	square, err := s.dot(ctx, s.r, s.r)
	return math.Sqrt(square), err
}

// multiply computes the elements of A v that this rank's columns have: the sum of what this row of
// processes has for its rows comes to lie at the columns of the transposed rank.
func (s *solver) multiply(ctx context.Context, v, result []float64) error {
	s.a.multiply(v, s.product)
	kept, came := s.product[s.kept.first:s.kept.end], s.came[:s.kept.len()]
	for i := len(s.partners) - 1; i >= 0; i-- {
		data := kept
		if i == len(s.partners)-1 { // the nearest, which keeps the other half if the grid is not square
			data = s.product[s.given.first:s.given.end]
		}
		if err := s.exchange(ctx, data, came, s.partners[i]); err != nil {
			return err
		}
		for k, value := range came {
			kept[k] += value
		}
	}
	if len(s.partners) == 0 {
		copy(result, kept)
		return nil
	}
	return s.exchange(ctx, kept, result, s.transposed)
}

// exchange sends data to a rank, and receives what that sends: the receive is there first.
func (s *solver) exchange(ctx context.Context, data, result []float64, with int) error {
	_, err := mpi.Sendrecv(ctx, s.c, data, with, 0, result, with, 0)
	return err
}

// dot returns the dot product of two vectors of a row of processes: of all their columns.
func (s *solver) dot(ctx context.Context, a, b []float64) (float64, error) {
	s.one[0] = dot(a, b)
	err := s.sum(ctx, s.one)
	return s.one[0], err
}

// sum adds up the numbers of this row of processes, which has all columns.
func (s *solver) sum(ctx context.Context, numbers []float64) error {
	came := s.another[:len(numbers)]
	for _, partner := range s.partners {
		if err := s.exchange(ctx, numbers, came, partner); err != nil {
			return err
		}
		for i, number := range came {
			numbers[i] += number
		}
	}
	return nil
}

// dot is the part of a dot product that is this rank's.
func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
