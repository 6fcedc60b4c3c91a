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
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/floor"
	"github.com/rawlane/rawlane/bench/rig"
	"github.com/rawlane/rawlane/internal/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "barrier:", err)
		os.Exit(1)
	}
}

// patience is how long one contestant's round may take: several times what the slowest does.
const patience = 3 * time.Minute

// bench is what was asked for, and the programs that do it.
type bench struct {
	nodes         []int
	rounds, iters int
	rawlane       string
	mpi           bool
	floor         string // empty without a C compiler
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("barrier", flag.ExitOnError)
	nodes := flags.String("nodes", "2,4,8,16,32", "numbers of processes")
	rounds := flags.Int("rounds", 7, "rounds; each contestant's median counts")
	iters := flags.Int("iters", 1000, "barriers per contestant and round")
	asJSON := flags.Bool("json", false, "print JSON lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := bench{rounds: *rounds, iters: *iters}
	if b.nodes, err = parseNodes(*nodes); err != nil {
		return err
	}
	if b.rounds < 1 || b.iters < 1 {
		return errors.New("want -rounds and -iters of 1 or more")
	}
	if err := errors.Join(testbed.Reexec(), loopbackUp()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rawlane-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.build(ctx, dir); err != nil {
		return err
	}
	var all []*field
	for _, n := range b.nodes {
		f, err := b.compete(ctx, n)
		if err != nil {
			return fmt.Errorf("%d processes: %w", n, err)
		}
		all = append(all, f)
		if *asJSON {
			err = f.printJSON(out)
		} else {
			f.print(out)
		}
		if err != nil {
			return err
		}
	}
	if !*asJSON {
		verdicts(out, all)
	}
	return nil
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

// build makes the programs, and says which are left out.
func (b *bench) build(ctx context.Context, dir string) (err error) {
	if b.rawlane, err = rig.Rawlane(ctx, dir); err != nil {
		return err
	}
	if b.mpi, err = b.tryMPI(ctx); err != nil {
		return err
	}
	b.floor, err = floor.Build(dir)
	if errors.Is(err, floor.ErrNoCompiler) {
		fmt.Fprintf(os.Stderr, "%v: the C rows are left out, and with them their ratios\n", err)
		return nil
	}
	return err
}

// compete runs the rounds with n processes. Contestants take turns, so that a slow moment of the
// machine meets all.
func (b *bench) compete(ctx context.Context, n int) (*field, error) {
	f := &field{nodes: n}
	for round := range b.rounds {
		if err := b.runRawlane(ctx, f, round); err != nil {
			return nil, err
		}
		if b.floor == "" {
			continue
		}
		for _, c := range floors {
			if c.only != 0 && c.only != n {
				continue
			}
			mean, err := b.runFloor(ctx, n, c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			f.add(c.name, mean)
		}
	}
	return f, nil
}
