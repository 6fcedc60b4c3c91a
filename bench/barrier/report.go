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
	mpi    harness.Others    // without flags if there is none
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
		Title: fmt.Sprintf("Barrier among %d processes, us; median of %d rounds\n%-30s %9s %21s",
			nodes, rounds, "", "mean", "means of the rounds"),
		Text: func(r *harness.Row) string {
			name := r.Name
			if chosen := t.chosen[name]; chosen != "" && ours+chosen != name {
				name += " = " + chosen
			}
			return fmt.Sprintf("%-30s %9.2f %9.2f - %9.2f", name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			line := map[string]any{"name": r.Name, "nodes": t.nodes, "mean_us": r.Median(), "rounds": r.Rounds(),
				"lowest_mean_us": r.Min(), "highest_mean_us": r.Max()}
			if chosen := t.chosen[r.Name]; chosen != "" {
				line["chosen"] = chosen
			}
			return line
		},
		Width: 9,
	}
	t.AddRatio("/ MPI", "ratio_to_mpi", mpiTCP)
	t.Ratios = append(t.Ratios, harness.Ratio{Head: "/ best C", Key: "ratio_to_quickest_c",
		To: func() *harness.Row { return t.fastest(isC) }})
	return t
}

func isC(name string) bool    { return strings.HasPrefix(name, inC) }
func isOurs(name string) bool { return strings.HasPrefix(name, ours) }

// mpiLimits are of the best of rawlane's algorithms to Open MPI over TCP, by the number of
// processes.
var mpiLimits = map[int]float64{2: 0.6, 4: 0.6, 8: 0.6, 16: 0.5, 32: 0.12}

// cLimit is likewise to the quickest of the C program's ways, whose frames have no header, no
// checksum and no generations.
const cLimit = 1.2

// targets compares rawlane's algorithms with Open MPI, with the quickest way in C, and with each
// other.
func (t *table) targets() (all []harness.Target) {
	add := func(what string, r, to *harness.Row, limit float64) {
		what = fmt.Sprintf("%2d processes: %s", t.nodes, what)
		all = append(all, harness.Target{What: what, Got: r.Over(to), Limit: limit})
	}
	best := t.fastest(isOurs)
	if limit, ok := mpiLimits[t.nodes]; ok {
		add(fmt.Sprintf("best at most %.2f x Open MPI's TCP", limit), best, t.Find(mpiTCP), limit)
	}
	add(fmt.Sprintf("best at most %.2f x the quickest in C", cLimit), best, t.fastest(isC), cLimit)
	add(auto+" at most 1.10 x the best", t.Find(ours+auto), best, 1.10)
	return all
}

// summary is a table with a column for each number of processes.
func summary(tables []*table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Means of one barrier, us, by processes\n%-40s", "")
	for _, t := range tables {
		fmt.Fprintf(&b, " %8d", t.nodes)
	}
	b.WriteString("\n")
	line := func(name string, row func(*table) *harness.Row) {
		fmt.Fprintf(&b, "%-40s", name)
		for _, t := range tables {
			if r := row(t); r != nil {
				fmt.Fprintf(&b, " %8.2f", r.Median())
			} else {
				fmt.Fprintf(&b, " %8s", "-")
			}
		}
		b.WriteString("\n")
	}
	named := func(name string) func(*table) *harness.Row {
		return func(t *table) *harness.Row { return t.Find(name) }
	}
	line("rawlane, auto: a group's default", named(ours+auto))
	line("rawlane, "+shared+": shared cores", named(ours+shared))
	line("C, the quickest way", func(t *table) *harness.Row { return t.fastest(isC) })
	line("C, blocking", named("C, blocking"))
	line(mpiTCP, named(mpiTCP))
	line(mpiSHM, named(mpiSHM))
	return b.String()
}
