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

// The norm is NPB's, on any power of two of processes: on 16 some have no points of the coarsest
// level.
func TestProgram_ClassS(t *testing.T) {
	numbers := []int{1, 2, 4, 8, 16}
	if testing.Short() {
		numbers = []int{8, 16}
	}
	for _, ranks := range numbers {
		var out strings.Builder
		err := npb.Run(t.Context(), ranks, "MG", estimate, "S", &out)
		if err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") ||
			!strings.Contains(out.String(), "\n L2 Norm is 5.307707005") {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

// Class W is NPB 2.3's, whose residual goes down to rounding; that of NPB 3.4 is verified as well.
func TestProgram_ClassW(t *testing.T) {
	if testing.Short() {
		t.Skip("[short] skip: class W takes seconds")
	}
	for name, kernel := range map[string]npb.Kernel{
		"NPB 2.3": estimate,
		"NPB 3.4": with(problem{128, 4, 0.6467329375339e-5, tolerance}, false),
	} {
		if err := npb.Run(t.Context(), 8, "MG", kernel, "W", io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// with is the benchmark of another problem.
func with(p problem, paper bool) npb.Kernel {
	return func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, p, paper, out)
	}
}

func TestProgram_NoPowerOfTwo(t *testing.T) {
	err := npb.Run(t.Context(), 6, "MG", estimate, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "6 processes: MG wants a power of two, such as 4") {
		t.Error(err)
	}
}

func TestProgram_TooManyRanks(t *testing.T) {
	small := problem{edge: 4, iterations: 1}
	err := npb.Run(t.Context(), 2, "MG", with(small, false), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "2 processes are too many for 4 points an edge") {
		t.Error(err)
	}
}

func TestProgram_FindsWhatIsWrong(t *testing.T) {
	wrong := problem{edge: 16, iterations: 2, norm: 1, tolerance: tolerance}
	err := npb.Run(t.Context(), 2, "MG", with(wrong, false), "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not verified: the norm is ") {
		t.Error(err)
	}
}

// A norm that is off by more than the tolerance, or no number, is wrong.
func TestVerify(t *testing.T) {
	p := problem{norm: 8, tolerance: tolerance}
	for _, c := range []struct {
		norm  float64
		wrong bool
	}{
		{8, false}, {8 * (1 + 0.9e-8), false}, {8 * (1 - 0.9e-8), false},
		{8 * (1 + 1.1e-8), true}, {8 * (1 - 1.1e-8), true}, {math.NaN(), true}, {math.Inf(1), true},
	} {
		if err := p.verify(c.norm); (err != nil) != c.wrong {
			t.Errorf("%.12f: %v", c.norm, err)
		}
	}
}

// Operations are counted as NPB counts them.
func TestOperations(t *testing.T) {
	p := problems()["S"]
	if got := p.operations(); got != 7602176 {
		t.Errorf("%v, want 7602176", got)
	}
}
