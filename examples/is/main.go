// Command is is the integer sort of the NAS Parallel Benchmarks: it finds the rank of each of many
// keys, ten times over. Each rank sorts its keys into buckets, the ranks share the buckets out, and
// each key travels to the rank that has its bucket: one Allreduce, one Alltoall, one Alltoallv.
//
//	go run ./examples/is -class A                       four ranks in this process
//	go build ./examples/is && rawlane run -n 4 ./is     a process for each, on kernel links
//	go build ./examples/is && mpirun -n 4 ./is          started by MPICH
//
// The number of ranks is a power of two. Source: see package npb; the algorithm is that of its IS.
package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

func main() { npb.Main("IS", sortKeys) }

const iterations = 10

// problem is that of a class. All its numbers are powers of two.
type problem struct {
	keys     int
	maxKey   int // keys are below it
	buckets  int
	maxRanks int
	tests    [5]test
}

// test is what verifies an iteration: the rank of one key. Each iteration makes one more key small
// and one more large, so the ranks of small keys go up by one, and those of large ones down.
type test struct {
	index int // of the key
	rank  int // in iteration from
	up    int // 1, or -1 for a large key
	from  int
}

func problems() map[string]problem {
	return map[string]problem{
		"S": {1 << 16, 1 << 11, 1 << 9, 128, [5]test{
			{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0},
			{62548, 64917, -1, 0}, {4431, 65463, -1, 0},
		}},
		"W": {1 << 20, 1 << 16, 1 << 10, 1024, [5]test{
			{357773, 1249, 1, 2}, {934767, 11698, 1, 2}, {875723, 1039987, -1, 0},
			{898999, 1043896, -1, 0}, {404505, 1048018, -1, 0},
		}},
		"A": {1 << 23, 1 << 19, 1 << 10, 1024, [5]test{
			{2112377, 104, 1, 1}, {662041, 17523, 1, 1}, {5336171, 123928, 1, 1},
			{3642833, 8288932, -1, 1}, {4250760, 8388264, -1, 1},
		}},
	}
}

// sortKeys is each rank's part.
func sortKeys(ctx context.Context, c *mpi.Comm, o npb.Options, out io.Writer) (npb.Result, error) {
	return solve(ctx, c, problems()[o.Class], out)
}

func solve(ctx context.Context, c *mpi.Comm, p problem, out io.Writer) (r npb.Result, err error) {
	if n := c.Size(); n&(n-1) != 0 || n > p.maxRanks {
		return r, fmt.Errorf("%d ranks: want a power of two, up to %d", n, p.maxRanks)
	}
	fmt.Fprintf(out, " Size: %d\n Iterations: %d\n Total number of processes: %d\n", p.keys, iterations, c.Size())
	s := newSorter(c, p)
	if err := s.rankKeys(ctx, 1); err != nil { // untimed: all memory is in use afterwards
		return r, err
	}
	s.passed = 0
	r = npb.Result{Size: strconv.Itoa(p.keys), Iterations: iterations, Operation: "keys ranked"}
	r.Operations = float64(p.keys) * iterations
	r.Timed, err = npb.Measure(ctx, c, func() error {
		for iteration := 1; iteration <= iterations; iteration++ {
			if err := s.rankKeys(ctx, iteration); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	sorted, err := s.sorted(ctx)
	if err != nil {
		return r, err
	}
	if sorted {
		s.passed++
	}
	passed, want := []int{s.passed}, iterations*len(p.tests)+c.Size()
	if err := mpi.Allreduce(ctx, c, passed, passed, mpi.Sum); err != nil {
		return r, err
	}
	if passed[0] != want {
		r.Wrong = fmt.Errorf("%d of %d checks were passed", passed[0], want)
	}
	return r, nil
}
