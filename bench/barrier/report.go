//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
)

// table is the mean times of the variants with one number of processes, in us.
type table struct {
	harness.Table
	nodes  int
	round  int               // begun so far
	chosen map[string]string // algorithms, by the variant
}

// fastest returns the fastest of the variants with such names; nil if all of them were left out.
func (t *table) fastest(isOne func(name string) bool) (best *harness.Row) {
	for _, r := range t.Rows {
		if isOne(r.Name) && (best == nil || r.Median() < best.Median()) {
			best = r
		}
	}
	return best
}

func newTable(nodes, rounds int) *table {
	t := &table{nodes: nodes, chosen: make(map[string]string)}
	t.Table = harness.Table{
		Title: fmt.Sprintf("Barrier among %d processes, us; median of %d rounds\n%-28s %9s %21s",
			nodes, rounds, "", "mean", "means of the rounds"),
		Text: func(r *harness.Row) string {
			name := r.Name
			if chosen := t.chosen[name]; chosen != "" && ours+chosen != name {
				name += " = " + chosen
			}
			return fmt.Sprintf("%-28s %9.2f %9.2f - %9.2f", name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			line := map[string]any{"name": r.Name, "nodes": t.nodes, "mean_us": r.Median(), "rounds": len(r.Values),
				"lowest_mean_us": r.Min(), "highest_mean_us": r.Max()}
			if chosen := t.chosen[r.Name]; chosen != "" {
				line["chosen"] = chosen
			}
			return line
		},
		Width: 9,
	}
	t.AddRatio("/ MPI", "ratio_to_mpi", openMPI)
	t.AddRatio("/ C block", "ratio_to_c_blocking", cBlocking)
	t.AddRatio("/ C spin", "ratio_to_c_spinning", cSpinning)
	t.AddRatio("/ C ring", "ratio_to_c_ring", cRing)
	return t
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
		what = fmt.Sprintf("%2d processes: %s", t.nodes, what)
		all = append(all, harness.Target{What: what, Got: r.Over(to), Limit: limit})
	}
	best := t.fastest(func(name string) bool { return strings.HasPrefix(name, ours) })
	inC := t.fastest(func(name string) bool { return name == cBlocking || name == cSpinning })
	others := t.fastest(func(name string) bool { return strings.HasPrefix(name, ours) && name != ours+"auto" })
	if limit, ok := mpiLimits[t.nodes]; ok {
		add(fmt.Sprintf("best at most %.2f x Open MPI", limit), best, t.Find(openMPI), limit)
	}
	if cSizes[t.nodes] {
		add("concurrent at most 1.3 x C", t.Find(ours+"concurrent"), inC, 1.3)
		add("best at most 1.1 x C", best, inC, 1.1)
	}
	add("auto at most 1.15 x the best", t.Find(ours+"auto"), others, 1.15)
	return all
}
