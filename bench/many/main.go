//go:build linux

// Command many answers: what do thousands cost, of goroutines, ports, FIFOs and nodes, in one
// process? Each number is of a process of its own.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/procgroup"
)

// asPart, and its number, is the first argument of a process that measures a part. The iterations
// follow.
const asPart = "part:"

func main() {
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], asPart) {
		harness.Exit("many", measure(strings.TrimPrefix(os.Args[1], asPart), os.Args[2]))
	}
	b := harness.Bench{Name: "many", Link: "one process; ring: a veth pair between two namespaces",
		Rounds: 5, Iters: 200_000, MinIters: manyCallers, Run: run}
	b.Main()
}

// Numbers of what there are many of.
const (
	fewCallers  = 16
	manyCallers = 2048
	manyReaders = 10_000
	manyNodes   = 1024
	mostNodes   = 4096
)

// Sizes of Puts, in bytes.
const small, large = 64, 1024

// part is a row of a table, and how it is measured.
type part struct {
	table, row string
	measure    func(ctx context.Context, iters int) (float64, error)
}

// Tables.
const (
	onFabric = "Puts from one endpoint, over the fabric, us each"
	onRing   = "Puts from one endpoint, over a ring, us each"
	idle     = "Processor time while nothing comes, % of a core"
	nodes    = "Nodes of one process, us"
)

// Rows.
const (
	fewSmall  = "64 bytes, 16 goroutines"
	manySmall = "64 bytes, 2,048 goroutines"
	fewLarge  = "1 KiB, 16 goroutines"
	manyLarge = "1 KiB, 2,048 goroutines"
	portRow   = "10,000 ports' readers, fabric"
	fifoRow   = "10,000 FIFOs' readers, ring"
	barrier1k = "a barrier of 1,024 nodes, fabric"
	chosen    = "the choice of an algorithm for 4,096 nodes"
	again     = "the same choice again"
)

var parts = []part{
	{onFabric, fewSmall, puts(fabricPair, fewCallers, small)},
	{onFabric, manySmall, puts(fabricPair, manyCallers, small)},
	{onFabric, fewLarge, puts(fabricPair, fewCallers, large)},
	{onFabric, manyLarge, puts(fabricPair, manyCallers, large)},
	{onRing, fewSmall, puts(ringPair, fewCallers, small)},
	{onRing, manySmall, puts(ringPair, manyCallers, small)},
	{onRing, fewLarge, puts(ringPair, fewCallers, large)},
	{onRing, manyLarge, puts(ringPair, manyCallers, large)},
	{idle, portRow, idlePorts},
	{idle, fifoRow, idleFIFOs},
	{nodes, barrier1k, barriers},
	{nodes, chosen, choices(true)},
	{nodes, again, choices(false)},
}

// measure measures a part, and prints what it is.
func measure(number, iters string) error {
	k, err := strconv.Atoi(number)
	if err != nil || k < 0 || k >= len(parts) {
		return harness.Misuse("part %q: want 0 to %d", number, len(parts)-1)
	}
	n, err := strconv.Atoi(iters)
	if err != nil || n < 1 {
		return harness.Misuse("%q iterations: want 1 or more", iters)
	}
	got, err := parts[k].measure(context.Background(), n)
	if err != nil {
		return fmt.Errorf("%s: %w", parts[k].row, err)
	}
	_, err = fmt.Println(got)
	return err
}

func run(ctx context.Context, b *harness.Bench) (r harness.Report, err error) {
	tables := map[string]*harness.Table{}
	var all []harness.Variant
	for k, p := range parts {
		t := tables[p.table]
		if t == nil {
			t = newTable(p.table, b.Rounds)
			tables[p.table], r.Tables = t, append(r.Tables, t)
		}
		all = append(all, harness.Variant{Name: p.row, Run: func(ctx context.Context) error {
			got, err := inProcess(ctx, k, b.Iters)
			if err == nil {
				t.Add(p.row, got)
			}
			return err
		}})
	}
	if b.Rows {
		return harness.RowsOf(all), nil
	}
	if err := b.RunRounds(ctx, all); err != nil {
		return r, err
	}
	r.Targets = targets(tables)
	return r, nil
}

func targets(tables map[string]*harness.Table) (all []harness.Target) {
	for _, table := range []string{onFabric, onRing} {
		for _, rows := range [][2]string{{manySmall, fewSmall}, {manyLarge, fewLarge}} {
			all = append(all, harness.Target{
				What:  fmt.Sprintf("%s: %s at most 2 x 16", strings.Split(table, ", ")[1], rows[0]),
				Got:   tables[table].Find(rows[0]).Over(tables[table].Find(rows[1])),
				Limit: 2,
			})
		}
	}
	return append(all,
		harness.Target{What: portRow + ": at most 1 % of a core", Got: tables[idle].Find(portRow).Median(), Limit: 1},
		harness.Target{What: fifoRow + ": at most 1 % of a core", Got: tables[idle].Find(fifoRow).Median(), Limit: 1},
		harness.Target{What: chosen + ": at most 1 ms", Got: tables[nodes].Find(chosen).Median(), Limit: 1000})
}

func newTable(title string, rounds int) *harness.Table {
	return &harness.Table{
		Title: fmt.Sprintf("%s; median of %d rounds\n%-44s %10s %23s", title, rounds, "", "median", "range"),
		Text: func(r *harness.Row) string {
			return fmt.Sprintf("%-44s %10.2f %10.2f - %10.2f", r.Name, r.Median(), r.Min(), r.Max())
		},
		JSON: func(r *harness.Row) map[string]any {
			return map[string]any{"table": title, "name": r.Name, "rounds": r.Rounds(),
				"median": r.Median(), "lowest": r.Min(), "highest": r.Max()}
		},
	}
}

// inProcess has a process of its own measure a part.
func inProcess(ctx context.Context, k, iters int) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, asPart+strconv.Itoa(k), strconv.Itoa(iters))
	procgroup.Own(cmd)
	procgroup.DieWithThread(cmd)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
}
