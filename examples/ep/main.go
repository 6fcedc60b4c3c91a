// Command ep is the embarrassingly parallel benchmark of the NAS Parallel Benchmarks: it makes
// pairs of normally distributed random numbers, and counts how many lie how far out. The ranks
// compute alone, and add up at the end: three Allreduces.
//
//	go run ./examples/ep -class W                       four ranks in this process
//	go build ./examples/ep && rawlane run -n 8 ./ep     a process for each, on kernel links
//	go build ./examples/ep && mpirun -n 8 ./ep          started by MPICH
//
// Any number of ranks will do, up to one for each batch of pairs. Source: see package npb, whose EP
// has the same batches and messages (EP/ep.f90, EP/verify.f90).
package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

func main() { npb.Main("EP", makePairs) }

// problem is that of a class.
type problem struct {
	batches int     // of pairs of random numbers
	want    tallies // without counts but for their sum, in the first
}

func problems() map[string]problem {
	return map[string]problem{
		"S": {1 << 8, tallies{1.051299420395306e7, 1.051517131857535e7, [rings]float64{13176389}}},
		"W": {1 << 9, tallies{2.102505525182392e7, 2.103162209578822e7, [rings]float64{26354769}}},
		"A": {1 << 12, tallies{1.682235632304711e8, 1.682195123368299e8, [rings]float64{210832767}}},
	}
}

// tolerance of the sums, relative.
const tolerance = 1e-8

// makePairs is each rank's part.
func makePairs(ctx context.Context, c *mpi.Comm, o npb.Options, out io.Writer) (npb.Result, error) {
	return solve(ctx, c, problems()[o.Class], out)
}

func solve(ctx context.Context, c *mpi.Comm, p problem, out io.Writer) (r npb.Result, err error) {
	if c.Size() > p.batches {
		return r, fmt.Errorf("%d ranks: want up to %d, one for each batch", c.Size(), p.batches)
	}
	numbers := 2 * p.batches * batchPairs
	fmt.Fprintf(out, " Number of random numbers generated: %d\n Total number of processes: %d\n", numbers, c.Size())
	var sum tallies
	r = npb.Result{Size: strconv.Itoa(numbers), Operations: float64(numbers), Operation: "random numbers generated"}
	r.Timed, err = npb.Measure(ctx, c, func() (err error) {
		sum = tally(part(p.batches, c.Rank(), c.Size()))
		return sum.add(ctx, c)
	})
	if err != nil {
		return r, err
	}
	fmt.Fprintf(out, "\n No. Gaussian Pairs = %15.0f\n Sums = %25.15E%25.15E\n Counts:\n", sum.pairs(), sum.x, sum.y)
	for ring, n := range sum.counts {
		fmt.Fprintf(out, "%3d%15.0f\n", ring, n)
	}
	r.Wrong = p.verify(&sum)
	return r, nil
}

// verify returns what is wrong with a result.
func (p *problem) verify(got *tallies) error {
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"the sum of the first numbers", got.x, p.want.x},
		{"the sum of the second numbers", got.y, p.want.y},
		{"the number of pairs", got.pairs(), p.want.pairs()},
	} {
		if npb.IsOff(c.got, c.want, tolerance) {
			return fmt.Errorf("%s is %.15E, want %.15E", c.what, c.got, c.want)
		}
	}
	return nil
}
