//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
)

// table is the mean times of the variants with one number of processes, in us.
type table struct {
	harness.Rows
	nodes  int
	chosen map[string]string // algorithms, by the variant
}

// best returns the fastest of the variants whose names begin so, except one.
func (t *table) best(prefix, except string) (best *harness.Row) {
	for _, r := range t.Rows {
		if strings.HasPrefix(r.Name, prefix) && r.Name != except && (best == nil || r.Median() < best.Median()) {
			best = r
		}
	}
	return best
}

// faster returns the faster of two variants, or the one that was not left out.
func (t *table) faster(a, b string) *harness.Row {
	x, y := t.Find(a), t.Find(b)
	if x == nil || y != nil && y.Median() < x.Median() {
		return y
	}
	return x
}

// columns are the variants that all are compared with.
var columns = []struct{ head, key, name string }{
	{"/ MPI", "ratio_to_mpi", openMPI},
	{"/ C block", "ratio_to_c_blocking", cBlocking},
	{"/ C spin", "ratio_to_c_spinning", cSpinning},
	{"/ C ring", "ratio_to_c_ring", cRing},
}

// report is a table for each number of processes.
type report []*table

// JSON implements harness.Report.
func (all report) JSON() (lines []any) {
	for _, t := range all {
		for _, r := range t.Rows {
			lines = append(lines, t.line(r))
		}
	}
	return lines
}

func (t *table) line(r *harness.Row) map[string]any {
	line := map[string]any{"name": r.Name, "nodes": t.nodes, "mean_us": r.Median(), "rounds": len(r.Values),
		"lowest_mean_us": r.Min(), "highest_mean_us": r.Max()}
	if chosen := t.chosen[r.Name]; chosen != "" {
		line["chosen"] = chosen
	}
	for _, col := range columns {
		if other := t.Find(col.name); other != nil {
			line[col.key] = r.Over(other)
		}
	}
	return line
}

// Text implements harness.Report.
func (all report) Text(out io.Writer) {
	var targets []harness.Target
	for _, t := range all {
		t.print(out)
		targets = append(targets, t.targets()...)
	}
	harness.PrintTargets(out, targets...)
}

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "Barrier among %d processes, us; median of %d rounds\n%-28s %9s %21s",
		t.nodes, len(t.Rows[0].Values), "", "mean", "means of the rounds")
	for _, col := range columns {
		if t.Find(col.name) != nil {
			fmt.Fprintf(out, " %9s", col.head)
		}
	}
	fmt.Fprintln(out)
	for _, r := range t.Rows {
		name := r.Name
		if chosen := t.chosen[name]; chosen != "" && ours+chosen != name {
			name += " = " + chosen
		}
		fmt.Fprintf(out, "%-28s %9.2f %9.2f - %9.2f", name, r.Median(), r.Min(), r.Max())
		for _, col := range columns {
			if other := t.Find(col.name); other != nil {
				fmt.Fprintf(out, " %9.2f", r.Over(other))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
}

// Limits of the targets, by the number of processes.
var (
	mpiLimits = map[int]float64{2: 0.4, 4: 0.6, 8: 0.6, 32: 0.25}
	cSizes    = map[int]bool{2: true, 8: true, 32: true}
)

// targets compares rawlane's algorithms with Open MPI, with the faster way to wait for a socket in
// C, and with each other.
func (t *table) targets() (all []harness.Target) {
	add := func(what string, r, to *harness.Row, limit float64) {
		if to != nil {
			what = fmt.Sprintf("%2d processes: %s", t.nodes, what)
			all = append(all, harness.Target{What: what, Got: r.Over(to), Limit: limit})
		}
	}
	best := t.best(ours, "")
	if limit, ok := mpiLimits[t.nodes]; ok {
		add(fmt.Sprintf("best at most %.2f x Open MPI", limit), best, t.Find(openMPI), limit)
	}
	if c := t.faster(cBlocking, cSpinning); cSizes[t.nodes] {
		add("concurrent at most 1.3 x C", t.Find(ours+"concurrent"), c, 1.3)
		add("best at most 1.1 x C", best, c, 1.1)
	}
	add("auto at most 1.15 x the best", t.Find(ours+"auto"), t.best(ours, ours+"auto"), 1.15)
	return all
}
