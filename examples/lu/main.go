// Command lu is the LU benchmark of the NAS Parallel Benchmarks: a gas in a cube, by the
// Navier-Stokes equations, goes on in steps of time towards a solution that is known. Each step
// solves a system of equations about, by symmetric successive over-relaxation: a sweep through
// all points from the lowest corner up, and one back, in each of which a point needs those before
// it. The cube is cut along two axes, and each process has a block. A sweep goes plane by plane:
// a process that has done its part of a plane sends the last line of points to its neighbours, who
// begin, while it goes on with the next plane. So messages are many, and short.
//
//	go run ./examples/lu -class W                       four ranks in this process
//	go build ./examples/lu && rawlane run -n 8 ./lu     a process for each, on kernel links
//	go build ./examples/lu && mpirun -n 8 ./lu          started by MPICH
//
// The number of ranks is a power of two. Receives name their source; with -paper those of faces do
// not, as in NPB 2.3, which MPI/MBCF's paper has. Source: see package npb, whose LU has the same
// equations, blocks and messages (LU/proc_grid.f90, rhs.f90, jacld.f90, blts.f90, ssor.f90,
// exchange_1.f90, exchange_3.f90).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

func main() { npb.Main("LU", simulate) }

// problem is that of a class.
type problem struct {
	edge  int // of the cube of points
	steps int
	step  float64 // of time
	want  outcome
}

// outcome is what NPB verifies.
type outcome struct {
	residual state   // how fast the gas still changes: the root of the mean square
	off      state   // how far from the solution it is, likewise
	integral float64 // of its pressure, over the surface of a box
}

func problems() map[string]problem {
	return map[string]problem{
		"S": {12, 50, 0.5, outcome{
			state{1.6196343210977e-2, 2.1976745164821e-3, 1.5179927653399e-3, 1.5029584435994e-3, 3.4264073155896e-2},
			state{6.4223319957961e-4, 8.4144342047348e-5, 5.8588269616485e-5, 5.8474222595157e-5, 1.3103347914111e-3},
			7.8418928865937,
		}},
		"W": {33, 300, 1.5e-3, outcome{
			state{12.36511638192, 1.317228477799, 2.550120713095, 2.326187750252, 28.26799444189},
			state{0.4867877144216, 5.064652880982e-2, 9.281818101960e-2, 8.570126542733e-2, 1.084277417792},
			11.61399311023,
		}},
		"A": {64, 250, 2, outcome{
			state{779.02107606689, 63.402765259693, 194.99249727292, 178.45301160419, 1838.4760349464},
			state{29.964085685472, 2.8194576365003, 7.3473412698775, 6.7139225687777, 70.715315688393},
			26.030925604886,
		}},
	}
}

const tolerance = 1e-8 // of what is verified, relative

// simulate is each rank's part.
func simulate(ctx context.Context, c *mpi.Comm, o npb.Options, out io.Writer) (npb.Result, error) {
	return solve(ctx, c, problems()[o.Class], o.Paper, out)
}

func solve(ctx context.Context, c *mpi.Comm, p problem, paper bool, out io.Writer) (r npb.Result, err error) {
	s, err := newSolver(c, p, paper)
	if err != nil {
		return r, err
	}
	size := fmt.Sprintf("%dx%dx%d", p.edge, p.edge, p.edge)
	fmt.Fprintf(out, " Size: %s\n Iterations: %d\n Total number of processes: %d\n\n", size, p.steps, c.Size())
	if err := s.prepare(ctx); err != nil {
		return r, err
	}
	var got outcome
	r = npb.Result{Size: size, Iterations: p.steps, Operations: p.operations(), Operation: "floating point"}
	r.Timed, err = npb.Measure(ctx, c, func() (err error) {
		got.residual, err = s.run(ctx, p.steps, out)
		return err
	})
	if err != nil {
		return r, err
	}
	if got.off, got.integral, err = s.judge(ctx); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "\n RMS-norms of residual:%s\n RMS-norms of solution error:%s\n Surface integral: %.13E\n",
		got.residual, got.off, got.integral)
	r.Wrong = p.verify(got)
	return r, nil
}

// verify returns what is wrong with a result.
func (p *problem) verify(got outcome) error {
	var wrong []error
	check := func(what string, got, want float64) {
		if npb.IsOff(got, want, tolerance) {
			wrong = append(wrong, fmt.Errorf("%s is %.13E, want %.13E", what, got, want))
		}
	}
	for m := range got.residual {
		check(fmt.Sprintf("residual %d", m+1), got.residual[m], p.want.residual[m])
		check(fmt.Sprintf("solution error %d", m+1), got.off[m], p.want.off[m])
	}
	check("surface integral", got.integral, p.want.integral)
	return errors.Join(wrong...)
}

// operations is how many floating point operations NPB counts.
func (p *problem) operations() float64 {
	n := float64(p.edge)
	return float64(p.steps) * (1984.77*n*n*n - 10923.3*n*n + 27770.9*n - 144010)
}
