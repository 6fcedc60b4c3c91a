package main

import (
	"context"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

// The result is NPB's, on any number of processes, and what is left of the equations is nothing but
// rounding.
func TestProgram_ClassS(t *testing.T) {
	last := regexp.MustCompile(`\n +15 +\d\.\d+E-1[456] +8\.5971775078648\n`)
	numbers := []int{1, 2, 3, 4}
	if testing.Short() {
		numbers = []int{3}
	}
	for _, ranks := range numbers {
		var out strings.Builder
		err := npb.Run(t.Context(), ranks, "CG", estimate, "S", &out)
		if err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") || !last.MatchString(out.String()) {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

// Operations are counted as NPB counts them.
func TestOperations(t *testing.T) {
	p := problems()["S"]
	if got := p.operations(); got != 66654000 {
		t.Errorf("%v, want 66654000", got)
	}
}

// A result that is off by more than 1e-10, or no number, is wrong.
func TestVerify(t *testing.T) {
	p := problem{zeta: 8}
	for _, c := range []struct {
		zeta  float64
		wrong bool
	}{
		{8, false}, {8 * (1 + 0.9e-10), false}, {8 * (1 - 0.9e-10), false},
		{8 * (1 + 1.1e-10), true}, {8 * (1 - 1.1e-10), true}, {math.NaN(), true}, {math.Inf(1), true},
	} {
		if err := p.verify(c.zeta); (err != nil) != c.wrong {
			t.Errorf("%.12f: %v", c.zeta, err)
		}
	}
}

func TestProgram_FindsWhatIsWrong(t *testing.T) {
	kernel := func(ctx context.Context, c *mpi.Comm, _ string, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, problem{rows: 60, nonzeros: 4, shift: 10, zeta: 1}, out)
	}
	err := npb.Run(t.Context(), 2, "CG", kernel, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not verified: zeta is ") {
		t.Error(err)
	}
}

// The matrix is symmetric, and the rows of one part are those of the whole.
func TestNewMatrix(t *testing.T) {
	p := problem{rows: 60, nonzeros: 4, shift: 10}
	whole := dense(p, 0, p.rows)
	for i := range p.rows {
		for j := range i {
			if math.Abs(whole[i][j]-whole[j][i]) > 1e-14 {
				t.Errorf("element %d, %d is %v, and the other way round %v", i, j, whole[i][j], whole[j][i])
			}
		}
	}
	for k, row := range dense(p, 17, 40) {
		for j, v := range row {
			if v != whole[17+k][j] {
				t.Errorf("element %d, %d is %v in the whole, and %v in a part", 17+k, j, whole[17+k][j], v)
			}
		}
	}
}

// dense returns rows of the matrix, by multiplying unit vectors.
func dense(p problem, first, end int) [][]float64 {
	m := newMatrix(p, first, end)
	rows := make([][]float64, end-first)
	column := make([]float64, end-first)
	for j := range p.rows {
		unit := make([]float64, p.rows)
		unit[j] = 1
		m.multiply(unit, column)
		for i, v := range column {
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}
