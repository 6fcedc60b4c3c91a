package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// All ranks of keys are NPB's, on any number of processes.
func TestProgram_ClassS(t *testing.T) {
	for _, ranks := range []int{1, 2, 4, 8} {
		var out strings.Builder
		if err := npb.Run(t.Context(), ranks, "IS", sortKeys, "S", &out); err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

func TestProgram_RefusesOtherNumbersOfRanks(t *testing.T) {
	err := npb.Run(t.Context(), 3, "IS", sortKeys, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "3 ranks: want a power of two, up to 128") {
		t.Error(err)
	}
}

func TestProgram_RefusesMoreRanksThanNPB(t *testing.T) {
	small := problems()["S"]
	small.maxRanks = 1
	err := npb.Run(t.Context(), 2, "IS", with(small), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "2 ranks: want a power of two, up to 1") {
		t.Error(err)
	}
}

// with is the benchmark of another problem.
func with(p problem) npb.Kernel {
	return func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, p, out)
	}
}

// A rank that differs from NPB's is counted in each iteration, and the result is not verified.
func TestProgram_FindsWhatIsWrong(t *testing.T) {
	wrong := problems()["S"]
	wrong.tests[3].rank++
	err := npb.Run(t.Context(), 2, "IS", with(wrong), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "42 of 52 checks were passed") {
		t.Error(err)
	}
}

// Keys are sorted where each rank's are, and not below those of a lower rank.
func TestSorted(t *testing.T) {
	for name, c := range map[string]struct {
		own  [3][]int32 // of each rank
		swap bool       // the ranks of 0 and 1
		want []bool
	}{
		"sorted":           {[3][]int32{{1, 0, 1}, {}, {3, 2}}, false, []bool{true, true, true}},
		"below a rank's":   {[3][]int32{{7, 0}, {}, {3, 4}}, false, []bool{true, true, false}},
		"all at the first": {[3][]int32{{3, 1, 2}, {}, {}}, false, []bool{true, true, true}},
		"not by rank":      {[3][]int32{{0, 1}, {}, {3, 2}}, true, []bool{false, true, true}},
	} {
		got := make([]bool, len(c.own))
		err := npb.Run(t.Context(), len(c.own), "IS", func(ctx context.Context, comm *mpi.Comm, _ npb.Options, _ io.Writer) (r npb.Result, err error) {
			s := &sorter{problem: problem{buckets: 1}, c: comm, shift: 3, totals: make([]int32, 1), own: c.own[comm.Rank()]}
			s.count(0, 1)
			if c.swap {
				s.upTo[0], s.upTo[1] = s.upTo[1], s.upTo[0]
			}
			got[comm.Rank()], err = s.sorted(ctx)
			return npb.Result{Timed: npb.Timed{Time: 1}}, err
		}, "S", io.Discard)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// Buckets are shared out by their keys: the last ranks get none if one bucket has most.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		totals []int32
		ranks  int
		want   []int
	}{
		{[]int32{1, 1, 1, 1}, 2, []int{2, 4}},
		{[]int32{0, 3, 0, 1}, 2, []int{2, 4}},
		{[]int32{0, 0, 4, 0}, 2, []int{3, 4}},
		{[]int32{4, 0, 0, 0}, 4, []int{1, 2, 3, 4}},
		{[]int32{0, 0, 1, 3}, 4, []int{3, 4, 4, 4}},
	} {
		if got := share(c.totals, c.ranks, 4/c.ranks); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("share(%v, %d): %v, want %v", c.totals, c.ranks, got, c.want)
		}
	}
}
