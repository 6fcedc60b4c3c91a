//go:build linux

// Command barrier answers: how does a rawlane barrier among processes compare with Open MPI's on
// the same machine, and with the least that frames can do it with, in C? Each process is in a
// network namespace of its own, two joined by a veth pair, more by a bridge; Open MPI's talk by TCP
// over the loopback, and through the shared memory that one machine has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

var list = flag.String("nodes", "2,4,8,16,32", "numbers of processes")

func main() {
	b := harness.Bench{Name: "barrier", Link: "namespaces joined by a veth pair (2) or a Linux bridge (more)",
		Rounds: 7, Iters: 1000, MinIters: 1, Run: run}
	b.Main()
}

// tries is how long Open MPI may take to show that it runs here.
const tries = 2 * time.Minute

// bench is the benchmark and the programs that it compares.
type bench struct {
	*harness.Bench
	mpi   bool
	tries time.Duration // tries, but in tests
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	nodes, err := harness.ParseNodes(*list, testbed.MaxNodes)
	if err != nil {
		return r, err
	}
	if b := (bench{Bench: hb, mpi: true}); hb.Rows {
		return harness.RowsOf(b.variants(newTable(2, 1))), nil
	}
	if err := errors.Join(testbed.Reexec(), loopbackUp()); err != nil {
		return r, err
	}
	b := bench{Bench: hb, tries: tries}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if b.mpi, err = b.tryMPI(ctx); err != nil {
		return r, err
	}
	var tables []*table
	for _, n := range nodes {
		t := newTable(n, b.Rounds)
		if b.mpi {
			t.mpi = openMPI()
		}
		if err := b.RunRounds(ctx, b.variants(t)); err != nil {
			return r, fmt.Errorf("%d processes: %w", n, err)
		}
		tables = append(tables, t)
		r.Tables = append(r.Tables, &t.Table)
		r.Targets = append(r.Targets, t.targets()...)
	}
	r.Note = "\n" + summary(tables)
	return r, nil
}

// variants are all that are to be compared with so many processes.
func (b *bench) variants(t *table) []harness.Variant {
	var rows []string
	if b.mpi {
		rows = append(rows, mpiTCP, mpiSHM)
	}
	for _, name := range algorithms {
		rows = append(rows, ours+name)
	}
	cores := runtime.NumCPU()
	if b.Rows {
		cores = max(2, cores) // the names of all, wherever that is asked
	}
	all := []harness.Variant{{Name: "rawlane", Rows: rows, Run: func(ctx context.Context) error {
		return b.runRawlane(ctx, t)
	}}}
	for _, c := range cVariants {
		if b.Programs.C == "" || !c.runs(t.nodes, cores) {
			continue
		}
		all = append(all, harness.Variant{Name: c.name, Run: func(ctx context.Context) error {
			mean, err := b.runC(ctx, t.nodes, c)
			if err == nil {
				t.Add(c.name, mean)
			}
			return err
		}})
	}
	return all
}
