package mpi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/mpi"
	"github.com/rawlane/rawlane/transport/fault"
)

// overlapping is collective operations of n elements of each process, whose data lies in memory from
// at on, and whose result lies in memory from 0 on, where either is of all from to elements.
var overlapping = map[string]struct {
	all, result bool // of all: what a process gives, what it gets
	call        func(t *testing.T, c *mpi.Comm, data, result []int32)
}{
	"alltoall": {true, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Alltoall(t.Context(), c, data, result))
	}},
	"ialltoall": {true, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, second(mpi.Ialltoall(c, data, result).Wait(t.Context())))
	}},
	"alltoallv": {true, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Alltoallv(t.Context(), c, partsOf(c, data), partsOf(c, result)))
	}},
	"allreduce": {false, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Allreduce(t.Context(), c, data, result, mpi.Sum))
	}},
	"reduce": {false, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Reduce(t.Context(), c, data, result, mpi.Sum, 1))
	}},
	"scan": {false, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Scan(t.Context(), c, data, result, mpi.Sum))
	}},
	"exscan": {false, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Exscan(t.Context(), c, data, result, mpi.Sum))
	}},
	"reduce-scatter": {true, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		counts := slices.Repeat([]int{len(result)}, c.Size())
		must(t, mpi.ReduceScatter(t.Context(), c, data, result, counts, mpi.Sum))
	}},
	"gather": {false, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Gather(t.Context(), c, data, result, 1))
	}},
	"gatherv": {false, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Gatherv(t.Context(), c, data, partsOf(c, result), 1))
	}},
	"scatter": {true, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Scatter(t.Context(), c, data, result, 1))
	}},
	"scatterv": {true, false, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Scatterv(t.Context(), c, partsOf(c, data), result, 1))
	}},
	"allgather": {false, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Allgather(t.Context(), c, data, result))
	}},
	"iallgather": {false, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, second(mpi.Iallgather(c, data, result).Wait(t.Context())))
	}},
	"allgatherv": {false, true, func(t *testing.T, c *mpi.Comm, data, result []int32) {
		must(t, mpi.Allgatherv(t.Context(), c, data, partsOf(c, result)))
	}},
}

// What a process gives to a collective operation, and what it gets, may be the same memory, or
// overlap: the result is that of memory apart, by each algorithm.
func TestCollectives_Overlap(t *testing.T) {
	for name, o := range overlapping {
		for _, n := range []int{3, 9} {
			for _, size := range []int{1, 3, 100, enough(20_000, 5000)} {
				t.Run(fmt.Sprintf("%s of %d by %d", name, size, n), func(t *testing.T) {
					bubble(t, n, fault.Config{}, mpi.Config{}, func(t *testing.T, c *mpi.Comm) {
						gives, gets := size, size
						if o.all {
							gives *= n
						}
						if o.result {
							gets *= n
						}
						data := make([]int32, gives)
						for k := range data {
							data[k] = int32(c.Rank()*1_000_000 + k)
						}
						want := make([]int32, gets)
						o.call(t, c, slices.Clone(data), want)
						for _, at := range []int{0, 1, c.Rank() * size} {
							memory := make([]int32, max(at+gives, gets))
							copy(memory[at:], data)
							o.call(t, c, memory[at:at+gives], memory[:gets])
							if isRoot := c.Rank() == 1; !slices.Equal(memory[:gets], want) && (isRoot || !rooted[name]) {
								t.Errorf("rank %d, data from %d on: another result", c.Rank(), at)
							}
						}
					})
				})
			}
		}
	}
}

// rooted are operations whose result is the root's alone; Exscan has none at rank 0.
var rooted = map[string]bool{"reduce": true, "gather": true, "gatherv": true, "exscan": true}

// partsOf returns equal parts.
func partsOf(c *mpi.Comm, all []int32) [][]int32 {
	return slices.Collect(slices.Chunk(all, len(all)/c.Size()))
}
