//go:build linux

// Command barrier answers: how does a rawlane barrier among processes compare with Open MPI's on
// the same machine, and with the least that frames can do it with, in C? Each process is in a
// network namespace of its own, two joined by a veth pair, more by a bridge; Open MPI's talk by TCP
// over the loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

func main() {
	nodes := "2,4,8,16,32"
	b := harness.Bench{
		Name: "barrier", Rounds: 7, Iters: 1000, MinIters: 1,
		Flags: func(f *flag.FlagSet) { f.StringVar(&nodes, "nodes", nodes, "numbers of processes") },
		Run: func(ctx context.Context, o harness.Options) (harness.Report, error) {
			return run(ctx, o, nodes)
		},
	}
	b.Main()
}

// timeout bounds one round of a variant: several times the time of the slowest.
const timeout = 3 * time.Minute

// bench is the programs that are compared.
type bench struct {
	iters   int
	rawlane harness.Rawlane
	mpi     bool
	program string // the C program; "" without a compiler
}

func run(ctx context.Context, o harness.Options, list string) (r harness.Report, err error) {
	nodes, err := parseNodes(list)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(testbed.Reexec(), loopbackUp()); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rawlane-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := bench{iters: o.Iters}
	if b.rawlane, err = harness.BuildRawlane(ctx, dir); err != nil {
		return nil, err
	}
	if b.mpi, err = b.tryMPI(ctx); err != nil {
		return nil, err
	}
	if b.program, err = baseline.BuildIfPossible(dir); err != nil {
		return nil, err
	}
	var all report
	for _, n := range nodes {
		t, err := b.rounds(ctx, n, o.Rounds)
		if err != nil {
			return nil, fmt.Errorf("%d processes: %w", n, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func parseNodes(text string) (nodes []int, err error) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 || n > testbed.MaxNodes {
			return nil, fmt.Errorf("-nodes %q: want numbers of 2 to %d", text, testbed.MaxNodes)
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// rounds runs the variants with n processes in turns, so that a slow moment of the machine slows
// all of them.
func (b *bench) rounds(ctx context.Context, n, rounds int) (*table, error) {
	t := &table{nodes: n, chosen: make(map[string]string)}
	for round := range rounds {
		if err := b.runRawlane(ctx, t, round); err != nil {
			return nil, err
		}
		for _, c := range cVariants {
			if b.program == "" || c.only != 0 && c.only != n {
				continue
			}
			mean, err := b.runC(ctx, n, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			t.Add(c.name, mean)
		}
	}
	return t, nil
}
