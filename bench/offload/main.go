//go:build linux

// Command offload answers: what does a barrier gain whose Center has a unit in the path of its NIC?
//
// Each node is a process in a namespace of its own, on a bridge. All run the schedule offload: with
// the unit, and in the processes alone. In the fuzzy loop the Center enters, and computes or sleeps
// before it waits; the others enter meanwhile. In the plain loop all wait.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

var nodes = flag.String("nodes", "2,8,32", "numbers of nodes, separated by commas")

const (
	// work is for how long the Center computes, or sleeps.
	work = 5 * time.Millisecond
	// delay is when the others enter meanwhile.
	delay = time.Millisecond
	// patience is how long a round may take beyond its barriers, on a busy machine.
	patience = time.Minute
)

// The loops.
const (
	computes = "computes"
	sleeps   = "sleeps"
	waits    = "waits"
)

var loops = []string{computes, sleeps, waits}

// counters are who counts.
var counters = []string{"unit", "process"}

func rowName(loop, counter string, n int) string {
	return fmt.Sprintf("%s, %s, %d nodes", loop, counter, n)
}

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], asNode) {
		harness.Exit("offload", runNode(strings.TrimPrefix(os.Args[1], asNode), os.Args[2:]))
	}
	b := harness.Bench{Name: "offload", Link: "ring; a namespace for each process, on a bridge",
		Rounds: 5, Iters: 100, MinIters: 1, Run: run}
	b.Main()
}

// results are of one run, for one barrier: how long the last of the others to enter waits, and what
// the Center spends.
type results struct {
	table             *harness.Table
	waited, cpu, woke harness.Rows
}

func run(ctx context.Context, b *harness.Bench) (rep harness.Report, err error) {
	sizes, err := harness.ParseNodes(*nodes, testbed.MaxNodes)
	if err != nil {
		return rep, err
	}
	r := newResults()
	if b.Rows {
		return harness.RowsOf(r.variants(nil, b, sizes)), nil
	}
	bed, err := testbed.Open(testbed.Config{Nodes: sizes[len(sizes)-1], Bridge: true})
	if err != nil {
		return rep, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	if err := b.RunRounds(ctx, r.variants(bed, b, sizes)); err != nil {
		return rep, err
	}
	return harness.Report{Tables: []*harness.Table{r.table}, Targets: r.targets(sizes)}, nil
}

func newResults() *results {
	r := new(results)
	r.table = &harness.Table{
		Title: fmt.Sprintf("One barrier, us; medians of the rounds. The Center computes or sleeps for %v, or waits\n"+
			"%-32s %12s %12s %12s", work, "the Center", "last's p50", "Center's CPU", "its switches"),
		Text: func(row *harness.Row) string {
			cpu := "-" // with that of the work
			if !strings.HasPrefix(row.Name, computes) {
				cpu = fmt.Sprintf("%.1f", r.cpu.Find(row.Name).Median())
			}
			return fmt.Sprintf("%-32s %12.1f %12s %12.2f", row.Name, row.Median(), cpu, r.woke.Find(row.Name).Median())
		},
		JSON: func(row *harness.Row) map[string]any {
			return map[string]any{"name": row.Name, "last_p50_us": row.Median(),
				"center_cpu_us":   r.cpu.Find(row.Name).Median(),
				"center_switches": r.woke.Find(row.Name).Median(), "rounds": row.Rounds()}
		},
	}
	return r
}

func (r *results) variants(bed *testbed.Bed, b *harness.Bench, sizes []int) (all []harness.Variant) {
	for _, loop := range loops {
		for _, n := range sizes {
			for _, counter := range counters {
				name := rowName(loop, counter, n)
				all = append(all, harness.Variant{Name: name, Run: func(ctx context.Context) error {
					return r.round(ctx, bed, name, loop, counter, n, b.Iters)
				}})
			}
		}
	}
	return all
}

func (r *results) targets(sizes []int) (all []harness.Target) {
	ratio := func(rows harness.Rows, loop string, n int) float64 {
		return rows.Find(rowName(loop, counters[1], n)).Over(rows.Find(rowName(loop, counters[0], n)))
	}
	for _, n := range sizes {
		all = append(all, harness.Target{
			What:  fmt.Sprintf("%d nodes: while the Center computes the last to enter waits 10 x less", n),
			Limit: 10, AtLeast: true, Got: ratio(r.waited, computes, n),
		})
	}
	most := sizes[len(sizes)-1]
	return append(all, harness.Target{
		What: fmt.Sprintf("%d nodes: while the Center sleeps it spends 3 x less CPU", most), AtLeast: true, Limit: 3,
		Got: ratio(r.cpu, sleeps, most),
	})
}

// round runs a loop in new processes, and adds what they print.
func (r *results) round(
	ctx context.Context, bed *testbed.Bed, name, loop, counter string, n, iters int,
) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(iters)*10*work+patience)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	all := make([]*harness.Program, n)
	for k := range all {
		all[k], err = harness.Start(ctx, bed, k, nil,
			self, asNode+strconv.Itoa(k), strconv.Itoa(n), strconv.Itoa(iters), loop, counter)
		if err != nil {
			return err
		}
	}
	for _, p := range all {
		if err := p.AwaitReady(); err != nil {
			return err
		}
	}
	for _, p := range all {
		p.Begin()
	}
	spent, err := all[0].Numbers(2)
	if err != nil {
		return err
	}
	r.cpu.Add(name, spent[0])
	r.woke.Add(name, spent[1])
	var last []float64 // by barrier: the wait of the last of the others to enter
	for _, p := range all[1:] {
		waits, err := p.Numbers(iters)
		if err != nil {
			return err
		}
		if last == nil {
			last = waits
		}
		for i := range last {
			last[i] = min(last[i], waits[i])
		}
	}
	slices.Sort(last)
	r.table.Add(name, last[len(last)/2])
	r.waited.Add(name, last[len(last)/2])
	return nil
}
