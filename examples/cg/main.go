// Command cg is the conjugate gradient benchmark of the NAS Parallel Benchmarks: it estimates an
// eigenvalue of a large sparse matrix by the inverse power method, each step of which solves a
// system of equations. The processes are cut into rows and columns as the matrix is, and each has a
// block of it. A product with the matrix is summed up along a row of processes, and goes to the
// process on the other side of the diagonal; so does a dot product, of one number, along the row.
//
//	go run ./examples/cg -class A                       four ranks in this process
//	go build ./examples/cg && rawlane run -n 4 ./cg     a process for each, on kernel links
//	go build ./examples/cg && mpirun -n 4 ./cg          started by MPICH
//
// The number of ranks is a power of two. Source: see package npb, whose CG has the same matrix,
// blocks and messages (CG/cg.f90: setup_submatrix_info, conj_grad).
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

func main() { npb.Main("CG", estimate) }

// problem is that of a class.
type problem struct {
	rows     int
	nonzeros int // of each of the random vectors that the matrix is made of
	shift    float64
	zeta     float64 // the result
}

func problems() map[string]problem {
	return map[string]problem{
		"S": {1400, 7, 10, 8.5971775078648},
		"W": {7000, 8, 12, 10.362595087124},
		"A": {14000, 11, 20, 17.130235054029},
	}
}

const (
	iterations = 15    // of the power method
	tolerance  = 1e-10 // of the result, relative
)

// estimate is each rank's part.
func estimate(ctx context.Context, c *mpi.Comm, o npb.Options, out io.Writer) (npb.Result, error) {
	return solve(ctx, c, problems()[o.Class], out)
}

func solve(ctx context.Context, c *mpi.Comm, p problem, out io.Writer) (r npb.Result, err error) {
	s, err := newSolver(c, p)
	if err != nil {
		return r, err
	}
	fmt.Fprintf(out, " Size: %d\n Iterations: %d\n Number of nonzeroes per row: %d\n Eigenvalue shift: %.3f\n"+
		" Total number of processes: %d\n\n", p.rows, iterations, p.nonzeros, p.shift, c.Size())
	if _, err := s.power(ctx, 1, io.Discard); err != nil { // untimed: all memory is in use afterwards
		return r, err
	}
	var zeta float64
	r = npb.Result{Size: strconv.Itoa(p.rows), Iterations: iterations, Operation: "floating point"}
	r.Operations = p.operations()
	r.Timed, err = npb.Measure(ctx, c, func() (err error) {
		zeta, err = s.power(ctx, iterations, out)
		return err
	})
	if err != nil {
		return r, err
	}
	r.Wrong = p.verify(zeta)
	return r, nil
}

// verify returns what is wrong with a result.
func (p *problem) verify(zeta float64) error {
	if npb.IsOff(zeta, p.zeta, tolerance) {
		return fmt.Errorf("zeta is %.13f, want %.13f", zeta, p.zeta)
	}
	return nil
}

// operations is how many floating point operations NPB counts.
func (p *problem) operations() float64 {
	row := float64(p.nonzeros * (p.nonzeros + 1))
	return 2 * iterations * float64(p.rows) * (3 + row + steps*(5+row) + 3)
}

// power is the inverse power method: from a vector of ones on, it solves A z = x, and goes on with
// z of length 1 as x. It returns the estimate of the eigenvalue: zeta.
func (s *solver) power(ctx context.Context, iterations int, out io.Writer) (zeta float64, err error) {
	for i := range s.x {
		s.x[i] = 1
	}
	fmt.Fprintf(out, "   iteration           ||r||                 zeta\n")
	for iteration := 1; iteration <= iterations; iteration++ {
		residual, err := s.conjugateGradient(ctx)
		if err != nil {
			return 0, err
		}
		sums := []float64{dot(s.x, s.z), dot(s.z, s.z)}
		if err := s.sum(ctx, sums); err != nil {
			return 0, err
		}
		zeta = s.shift + 1/sums[0]
		length := math.Sqrt(sums[1])
		for i, z := range s.z {
			s.x[i] = z / length
		}
		if iteration == 1 || iteration%5 == 0 {
			fmt.Fprintf(out, "    %5d      %21.14E%21.13f\n", iteration, residual, zeta)
		}
	}
	return zeta, nil
}
