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

// The result is NPB's, on any power of two of processes, and what is left of the equations is
// nothing but rounding.
func TestProgram_ClassS(t *testing.T) {
	last := regexp.MustCompile(`\n +15 +\d\.\d+E-1[456] +8\.5971775078648\n`)
	numbers := []int{1, 2, 4, 8}
	if testing.Short() {
		numbers = []int{4}
	}
	for _, ranks := range numbers {
		var out strings.Builder
		err := npb.Run(t.Context(), ranks, "CG", estimate, "S", &out)
		if err != nil || !strings.Contains(out.String(), " SUCCESSFUL\n") || !last.MatchString(out.String()) {
			t.Errorf("%d ranks: %v: %s", ranks, err, &out)
		}
	}
}

// Where the rows do not come out even, blocks differ in size, as class S has them on 128 processes.
func TestSolve_UnevenBlocks(t *testing.T) {
	zetas := map[int]float64{}
	for _, ranks := range []int{1, 2, 4, 8} {
		kernel := func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (r npb.Result, err error) {
			s, err := newSolver(c, problem{rows: 67, nonzeros: 4, shift: 10})
			if err != nil {
				return r, err
			}
			zeta, err := s.power(ctx, 2, out)
			if c.Rank() == 0 {
				zetas[ranks] = zeta
			}
			return r, err
		}
		if err := npb.Run(t.Context(), ranks, "CG", kernel, "S", io.Discard); err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(zetas[ranks]-zetas[1]) / zetas[1]; !(off < 1e-12) {
			t.Errorf("%d ranks: zeta is %.15f, and %.15f of one", ranks, zetas[ranks], zetas[1])
		}
	}
}

// NPB wants a power of two as well, and says so.
func TestProgram_NoPowerOfTwo(t *testing.T) {
	err := npb.Run(t.Context(), 6, "CG", estimate, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "6 processes: CG wants a power of two, such as 4") {
		t.Error(err)
	}
}

// Messages are those of CG/cg.f90: with the iteration that is not timed, those that the paper's
// rates and times come to.
func TestMBCF_3_3_MessagesOfCG(t *testing.T) {
	const rows = 7000 // class W; its rows have few elements here, as messages do not depend on them
	for _, ranks := range []int{1, 2, 4, 8} {
		got, err := npb.Part(t.Context(), ranks, func(c *mpi.Comm) (func(context.Context) error, error) {
			s, err := newSolver(c, problem{rows: rows, nonzeros: 1, shift: 12})
			return func(ctx context.Context) error {
				_, err := s.power(ctx, 1, io.Discard)
				return err
			}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		messages, bytes := messagesOfCG(rows, uint64(ranks))
		if got.Messages != messages || got.Bytes != bytes {
			t.Errorf("%d ranks: %d messages of %d bytes an iteration; cg.f90 has %d of %d",
				ranks, got.Messages, got.Bytes, messages, bytes)
		}
		if ranks != 8 {
			continue
		}
		const paperMessages, paperBytes = 2138 * 11.02, 12.69e6 * 11.02 // rates of table 3 x time of table 6
		all, allBytes := float64((1+iterations)*got.Messages), float64((1+iterations)*got.Bytes)
		if math.Abs(all/paperMessages-1) > .1 || math.Abs(allBytes/paperBytes-1) > .1 {
			t.Errorf("%.0f messages of %.0f bytes; the paper has %.0f of %.0f", all, allBytes, paperMessages, paperBytes)
		}
	}
}

// messagesOfCG counts what an iteration of cg.f90 sends, by its loops over l2npcols, where rows are
// a multiple of the columns of processes.
func messagesOfCG(rows, ranks uint64) (messages, bytes uint64) {
	columns, logColumns := uint64(1), uint64(0)
	for columns*columns < ranks {
		columns, logColumns = 2*columns, logColumns+1
	}
	if logColumns == 0 {
		return 0, 0
	}
	products, dots := uint64(steps+1), uint64(1+2*steps+1)
	vector := 8 * rows / columns // send_len: half a row of processes' rows if the grid is not square
	messages = products*(logColumns+1) + dots*logColumns + logColumns
	bytes = products*(logColumns+1)*vector + dots*logColumns*8 + logColumns*16
	return ranks * messages, ranks * bytes
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
	kernel := func(ctx context.Context, c *mpi.Comm, _ npb.Options, out io.Writer) (npb.Result, error) {
		return solve(ctx, c, problem{rows: 60, nonzeros: 4, shift: 10, zeta: 1}, out)
	}
	err := npb.Run(t.Context(), 2, "CG", kernel, "S", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not verified: zeta is ") {
		t.Error(err)
	}
}

// The matrix is symmetric, and a block is a part of the whole.
func TestNewMatrix(t *testing.T) {
	p := problem{rows: 60, nonzeros: 4, shift: 10}
	whole := dense(p, span{0, p.rows}, span{0, p.rows})
	for i := range p.rows {
		for j := range i {
			if math.Abs(whole[i][j]-whole[j][i]) > 1e-14 {
				t.Errorf("element %d, %d is %v, and the other way round %v", i, j, whole[i][j], whole[j][i])
			}
		}
	}
	for k, row := range dense(p, span{17, 40}, span{11, 50}) {
		for j, v := range row {
			if v != whole[17+k][11+j] {
				t.Errorf("element %d, %d is %v in the whole, and %v in a block", 17+k, 11+j, whole[17+k][11+j], v)
			}
		}
	}
}

// dense returns a block of the matrix, by multiplying unit vectors.
func dense(p problem, rows, columns span) [][]float64 {
	m := newMatrix(p, rows, columns)
	all := make([][]float64, rows.len())
	column := make([]float64, rows.len())
	for j := range columns.len() {
		unit := make([]float64, columns.len())
		unit[j] = 1
		m.multiply(unit, column)
		for i, v := range column {
			all[i] = append(all[i], v)
		}
	}
	return all
}
