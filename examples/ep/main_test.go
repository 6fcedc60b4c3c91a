package main

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// The sums are NPB's, on any number of processes.
func TestProgram_ClassS(t *testing.T) {
	numbers := []int{1, 2, 3, 4, 8}
	if testing.Short() {
		numbers = []int{3}
	}
	for _, ranks := range numbers {
		var out strings.Builder
		err := npb.Run(t.Context(), ranks, "EP", makePairs, "S", &out)
		if err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") ||
			!strings.Contains(out.String(), " No. Gaussian Pairs =        13176389\n") {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

func TestProgram_ClassW(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: class W makes 67 million numbers")
	}
	if err := npb.Run(t.Context(), 2, "EP", makePairs, "W", io.Discard); err != nil {
		t.Error(err)
	}
}

// NPB wants a batch for each rank as well, and says so.
func TestProgram_TooManyRanks(t *testing.T) {
	err := npb.Run(t.Context(), 3, "EP", with(problem{batches: 2}), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "3 ranks: want up to 2, one for each batch") {
		t.Error(err)
	}
}

// with is the benchmark of another problem.
func with(p problem) npb.Kernel {
	return func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, p, out)
	}
}

func TestProgram_FindsWhatIsWrong(t *testing.T) {
	err := npb.Run(t.Context(), 2, "EP", with(problem{batches: 2, want: tallies{x: 1}}), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not verified: the sum of the first numbers is ") {
		t.Error(err)
	}
}

// A sum that is off by more than 1e-8, or no number, is wrong.
func TestVerify(t *testing.T) {
	p := problem{want: tallies{2, 4, [rings]float64{8}}}
	for _, c := range []struct {
		got   tallies
		wrong string
	}{
		{tallies{2, 4, [rings]float64{5, 3}}, ""},
		{tallies{2 * (1 + 0.9e-8), 4 * (1 - 0.9e-8), [rings]float64{8}}, ""},
		{tallies{2 * (1 + 1.1e-8), 4, [rings]float64{8}}, "first numbers"},
		{tallies{math.NaN(), 4, [rings]float64{8}}, "first numbers"},
		{tallies{2, 4 * (1 - 1.1e-8), [rings]float64{8}}, "second numbers"},
		{tallies{2, 4, [rings]float64{8, 1}}, "number of pairs"},
	} {
		err := p.verify(&c.got)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%v: %v, want %q", c.got, err, c.wrong)
		}
	}
}

// Each batch is one rank's, and no rank has two more than another one.
func TestPart(t *testing.T) {
	for _, batches := range []int{8, 9, 256} {
		for ranks := 1; ranks <= batches; ranks++ {
			before := 0
			for rank := range ranks {
				first, end := part(batches, rank, ranks)
				if n := end - first; first != before || n < batches/ranks || n > (batches+ranks-1)/ranks {
					t.Fatalf("rank %d of %d has %d to %d of %d batches, behind %d", rank, ranks, first, end, batches, before)
				}
				before = end
			}
			if before != batches {
				t.Fatalf("%d ranks have %d of %d batches", ranks, before, batches)
			}
		}
	}
}
