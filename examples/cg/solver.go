package main

import (
	"context"
	"math"

	"github.com/rawlane/rawlane/mpi"
)

// steps of the conjugate gradient method, each time.
const steps = 25

// solver is a rank's part. Its vectors have the elements of this rank's rows alone.
type solver struct {
	c     *mpi.Comm
	shift float64
	a     *matrix
	all   []float64   // a vector that is multiplied: the elements of all ranks
	parts [][]float64 // the same, by rank

	x, z       []float64 // A z = x
	r, p, q    []float64
	sum, total []float64 // one number
}

// newSolver makes this rank's rows of the matrix.
func newSolver(c *mpi.Comm, p problem) *solver {
	s := &solver{c: c, shift: p.shift, all: make([]float64, p.rows), sum: make([]float64, 1), total: make([]float64, 1)}
	begin := func(rank int) int { return p.rows * rank / c.Size() }
	for rank := range c.Size() {
		s.parts = append(s.parts, s.all[begin(rank):begin(rank+1)])
	}
	s.a = newMatrix(p, begin(c.Rank()), begin(c.Rank()+1))
	for _, v := range []*[]float64{&s.x, &s.z, &s.r, &s.p, &s.q} {
		*v = make([]float64, len(s.parts[c.Rank()]))
	}
	return s
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

// multiply computes this rank's part of A v.
func (s *solver) multiply(ctx context.Context, v, result []float64) error {
	if err := mpi.Allgatherv(ctx, s.c, v, s.parts); err != nil {
		return err
	}
	s.a.multiply(s.all, result)
	return nil
}

// dot returns the dot product of two vectors of all ranks.
func (s *solver) dot(ctx context.Context, a, b []float64) (float64, error) {
	s.sum[0] = dot(a, b)
	err := mpi.Allreduce(ctx, s.c, s.sum, s.total, mpi.Sum)
	return s.total[0], err
}

// dot is the part of a dot product that is this rank's.
func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
