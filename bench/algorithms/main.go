//go:build linux

// Command algorithms answers: which algorithm of a collective operation is the quickest, for which
// numbers of ranks and bytes, and how much slower is the one that package mpi chooses? Those of an
// operation take turns among so many processes, a namespace each.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mpi"
)

var (
	nodesFlag = flag.String("nodes", "2,4,8", "numbers of ranks")
	link      = flag.String("link", "ring", "kind of link")
)

func main() {
	b := harness.Bench{Name: "algorithms", Link: "processes, a namespace each, on a bridge",
		Rounds: 5, Iters: 300, MinIters: 1, Run: run}
	b.Main()
}

// limit of the choice's median over the least of any algorithm, for the size where it is worst.
const limit = 1.5

// operations are those with a choice, and the sizes in bytes: of a bcast those that a multicast
// takes, as a tree has the others.
var operations = []struct {
	name  string
	sizes []int
}{
	{"bcast", []int{4, 64, 1 << 10}},
	{"allreduce", []int{8, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20}},
	{"allgather", []int{8, 256, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10}},
	{"alltoall", []int{8, 64, 256, 512, 1 << 10, 4 << 10}},
}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	nodes, err := harness.ParseNodes(*nodesFlag, testbed.MaxNodes)
	if err != nil {
		return r, err
	}
	var tables []*table
	var variants []harness.Variant
	for _, o := range operations {
		for _, n := range nodes {
			t := newTable(o.name, o.sizes, n, b.Rounds)
			tables = append(tables, t)
			r.Tables = append(r.Tables, &t.Table)
			for _, name := range algorithmsOf(o.name) {
				sizes := t.fitting(name)
				if len(sizes) == 0 {
					continue
				}
				v := harness.Variant{Name: fmt.Sprintf("%s, %s, %d ranks", o.name, name, n)}
				v.Run = func(ctx context.Context) error { return t.measure(ctx, &b.Programs, name, sizes, b.Iters) }
				for _, size := range sizes {
					v.Rows = append(v.Rows, rowName(size, name))
				}
				variants = append(variants, v)
			}
		}
	}
	if b.Rows {
		return harness.RowsOf(variants), nil
	}
	if err := testbed.Reexec(); err != nil {
		return r, err
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if err := b.Programs.CheckLinks(ctx, "link", *link); err != nil {
		return r, err
	}
	if err := b.RunRounds(ctx, variants); err != nil {
		return r, err
	}
	for _, t := range tables {
		t.sort()
		r.Targets = append(r.Targets, t.target())
	}
	return r, nil
}

// algorithmsOf are those of an operation, each once.
func algorithmsOf(operation string) (names []string) {
	for _, a := range mpi.Algorithms() {
		if a.Operation == operation && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// chosen is the one that package mpi takes where so many ranks are on this machine.
func chosen(operation string, ranks, size int) string {
	return mpi.Choose(mpi.Algorithms(), operation, ranks, size, ranks > runtime.NumCPU()).Name
}

// table is the mean times of an operation's algorithms, in us.
type table struct {
	harness.Table
	operation string
	ranks     int
	sizes     []int
}

func newTable(operation string, sizes []int, ranks, rounds int) *table {
	t := &table{operation: operation, ranks: ranks, sizes: sizes}
	t.Table = harness.Table{
		Title: fmt.Sprintf("%s among %d ranks on %s, us; median of %d rounds\n%-32s %9s %21s %7s",
			operation, ranks, *link, rounds, "", "mean", "means of the rounds", "/ best"),
		Text: func(r *harness.Row) string {
			size, name := splitName(r.Name)
			mark := ""
			if chosen(operation, ranks, size) == name {
				mark = "  chosen"
			}
			return fmt.Sprintf("%-32s %9.2f %9.2f - %9.2f %7.2f%s",
				r.Name, r.Median(), r.Min(), r.Max(), r.Over(t.best(size)), mark)
		},
		JSON: func(r *harness.Row) map[string]any {
			size, name := splitName(r.Name)
			return map[string]any{"operation": operation, "ranks": ranks, "size_bytes": size, "algorithm": name,
				"mean_us": r.Median(), "rounds": r.Rounds(), "lowest_mean_us": r.Min(), "highest_mean_us": r.Max(),
				"ratio_to_best": r.Over(t.best(size)), "chosen": chosen(operation, ranks, size) == name}
		},
	}
	return t
}

func rowName(size, algorithm string) string { return size + ", " + algorithm }

func splitName(row string) (size int, algorithm string) {
	number, algorithm, _ := strings.Cut(row, ", ")
	size, _ = strconv.Atoi(number) // ours
	return size, algorithm
}

// fitting are the sizes that an algorithm takes.
func (t *table) fitting(algorithm string) (sizes []string) {
	a := mpi.Algorithm{Operation: t.operation, Name: algorithm}
	for _, size := range t.sizes {
		if a.Fits(t.operation, t.ranks, size, true) {
			sizes = append(sizes, strconv.Itoa(size))
		}
	}
	return sizes
}

// measure is a round of an algorithm, with some sizes.
func (t *table) measure(
	ctx context.Context, programs *harness.Programs, algorithm string, sizes []string, iters int,
) error {
	type line struct {
		Size int     `json:"size_bytes"`
		Mean float64 `json:"mean_us"`
	}
	lines, err := harness.Lines[line](ctx, programs, "mpi", t.operation, "--link", *link,
		"--nodes", strconv.Itoa(t.ranks), "--algorithm", algorithm,
		"--size", strings.Join(sizes, ","), "--iters", strconv.Itoa(iters))
	for _, l := range lines {
		t.Add(rowName(strconv.Itoa(l.Size), algorithm), l.Mean)
	}
	return err
}

// sort puts the algorithms of each size side by side.
func (t *table) sort() {
	slices.SortStableFunc(t.Rows, func(a, b *harness.Row) int {
		left, _ := splitName(a.Name)
		right, _ := splitName(b.Name)
		return cmp.Compare(left, right)
	})
}

// best returns the quickest algorithm's row of a size.
func (t *table) best(size int) (best *harness.Row) {
	for _, r := range t.Rows {
		if s, _ := splitName(r.Name); s == size && (best == nil || r.Median() < best.Median()) {
			best = r
		}
	}
	return best
}

// target is of the size where the choice is worst.
func (t *table) target() harness.Target {
	worst, at := math.NaN(), 0
	for _, size := range t.sizes {
		got := t.Find(rowName(strconv.Itoa(size), chosen(t.operation, t.ranks, size))).Over(t.best(size))
		if got > worst || math.IsNaN(worst) {
			worst, at = got, size
		}
	}
	return harness.Target{
		What: fmt.Sprintf("%-9s %2d ranks: the choice at most %.2f x the best", t.operation, t.ranks, limit),
		Got:  worst, Limit: limit, Note: fmt.Sprintf("of %d bytes, ", at),
	}
}
