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

// The result is NPB's, on any power of two of processes.
func TestProgram_ClassS(t *testing.T) {
	numbers := []int{1, 2, 4, 8}
	if testing.Short() {
		numbers = []int{4}
	}
	for _, ranks := range numbers {
		var out strings.Builder
		err := npb.Run(t.Context(), ranks, "LU", simulate, "S", &out)
		if err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") ||
			!strings.Contains(out.String(), "\n RMS-norms of residual: 1.619634321") {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

func TestProgram_ClassW(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: class W takes seconds")
	}
	if err := npb.Run(t.Context(), 8, "LU", simulate, "W", io.Discard); err != nil {
		t.Error(err)
	}
}

// with is the benchmark of another problem.
func with(p problem, paper bool) npb.Kernel {
	return func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, p, paper, out)
	}
}

// Receives of any source leave the result as it is.
func TestProgram_AsInThePaper(t *testing.T) {
	if err := npb.Run(t.Context(), 8, "LU", with(problems()["S"], true), "S", io.Discard); err != nil {
		t.Error(err)
	}
}

func TestProgram_NoPowerOfTwo(t *testing.T) {
	err := npb.Run(t.Context(), 6, "LU", simulate, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "6 processes: LU wants a power of two, such as 4") {
		t.Error(err)
	}
}

func TestProgram_TooManyRanks(t *testing.T) {
	err := npb.Run(t.Context(), 2, "LU", with(problem{edge: 5, steps: 1, step: 1}, false), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "2 processes are too many for 5 points an edge") {
		t.Error(err)
	}
}

// A step of time that is off by a millionth leads elsewhere.
func TestProgram_FindsWhatIsWrong(t *testing.T) {
	p := problems()["S"]
	p.step *= 1 + 1e-6
	err := npb.Run(t.Context(), 2, "LU", with(p, false), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not verified: residual 1 is ") {
		t.Error(err)
	}
}

// A number that is off by more than the tolerance, or none, is wrong, whichever it is.
func TestVerify(t *testing.T) {
	p := problems()["W"]
	if err := p.verify(p.want); err != nil {
		t.Error(err)
	}
	for what, number := range map[string]func(*outcome) *float64{
		"residual 1":       func(o *outcome) *float64 { return &o.residual[0] },
		"residual 5":       func(o *outcome) *float64 { return &o.residual[4] },
		"solution error 1": func(o *outcome) *float64 { return &o.off[0] },
		"solution error 5": func(o *outcome) *float64 { return &o.off[4] },
		"surface integral": func(o *outcome) *float64 { return &o.integral },
	} {
		for factor, wrong := range map[float64]bool{
			1 + 0.9e-8: false, 1 - 0.9e-8: false,
			1 + 1.1e-8: true, 1 - 1.1e-8: true, math.NaN(): true, math.Inf(1): true,
		} {
			got := p.want
			*number(&got) *= factor
			err := p.verify(got)
			if (err != nil) != wrong || wrong && !strings.HasPrefix(err.Error(), what+" is ") {
				t.Errorf("%s times %.10f: %v", what, factor, err)
			}
		}
	}
}

// Operations are counted as NPB counts them.
func TestOperations(t *testing.T) {
	p := problems()["S"]
	if got := p.operations(); math.Abs(got-102298408) > 1 {
		t.Errorf("%v, want 102298408", got)
	}
}
