// Command mg is the multigrid benchmark of the NAS Parallel Benchmarks: it solves Poisson's
// equation on a cube of points that is periodic, for twenty charges. Each iteration is a V-cycle:
// the residual goes down to ever coarser grids, and what is found there comes back as a correction.
// The processes are a grid of up to three axes, as the cube is, and each has a block. After each
// step neighbours exchange the faces of their blocks, one axis after the other.
//
//	go run ./examples/mg -class W                       four ranks in this process
//	go build ./examples/mg && rawlane run -n 8 ./mg     a process for each, on kernel links
//	go build ./examples/mg && mpirun -n 8 ./mg          started by MPICH
//
// The number of ranks is a power of two. Classes S and A are those of NPB 3.4, and W is that of
// NPB 2.3, which MPI/MBCF's paper has: 64 points an edge and 40 iterations, where NPB 3.4 has 128
// and 4. Receives name their source; with -paper they do not, as in NPB 2.3. Source: see package
// npb, whose MG has the same blocks and messages (MG/mg.f90: setup, mg3P, comm3, comm3_ex, zran3).
package main

import (
	"context"
	"fmt"
	"io"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

func main() { npb.Main("MG", estimate) }

// problem is that of a class.
type problem struct {
	edge       int // of the cube of points: a power of two
	iterations int
	norm       float64 // of the residual at the end: the root of the mean square
	tolerance  float64 // of the norm, relative
}

func problems() map[string]problem {
	return map[string]problem{
		"S": {32, 4, 0.5307707005734e-4, tolerance},
		"W": {64, 40, 0.250391406439e-17, roundingTolerance},
		"A": {256, 4, 0.2433365309069e-5, tolerance},
	}
}

const (
	tolerance = 1e-8
	// roundingTolerance is for a residual of which 40 iterations have left nothing but rounding,
	// which differs with the order of sums: here by 4 %. NPB 2.3 takes all below 1e-8 for right.
	roundingTolerance = 0.5
)

// estimate is each rank's part.
func estimate(ctx context.Context, c *mpi.Comm, o npb.Options, out io.Writer) (npb.Result, error) {
	return solve(ctx, c, problems()[o.Class], o.Paper, out)
}

func solve(ctx context.Context, c *mpi.Comm, p problem, paper bool, out io.Writer) (r npb.Result, err error) {
	s, err := newSolver(c, p.edge, paper)
	if err != nil {
		return r, err
	}
	size := fmt.Sprintf("%dx%dx%d", p.edge, p.edge, p.edge)
	fmt.Fprintf(out, " Size: %s\n Iterations: %d\n Total number of processes: %d\n\n", size, p.iterations, c.Size())
	if err := s.prepare(ctx); err != nil {
		return r, err
	}
	r = npb.Result{Size: size, Iterations: p.iterations, Operations: p.operations(), Operation: "floating point"}
	var norm float64
	r.Timed, err = npb.Measure(ctx, c, func() (err error) {
		norm, err = s.iterate(ctx, p.iterations, out)
		return err
	})
	if err != nil {
		return r, err
	}
	fmt.Fprintf(out, "\n L2 Norm is %.13E\n", norm)
	r.Wrong = p.verify(norm)
	return r, nil
}

// verify returns what is wrong with a result.
func (p *problem) verify(norm float64) error {
	if npb.IsOff(norm, p.norm, p.tolerance) {
		return fmt.Errorf("the norm is %.13E, want %.13E", norm, p.norm)
	}
	return nil
}

// operations is how many floating point operations NPB counts.
func (p *problem) operations() float64 {
	return 58 * float64(p.iterations) * float64(p.edge) * float64(p.edge) * float64(p.edge)
}
