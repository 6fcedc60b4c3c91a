//go:build linux

// Command memory answers: how do rawlane's remote writes and FIFOs compare with plain messages,
// with what one would write over TCP sockets in C otherwise, and with the frames that the machine
// carries?
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/rawlane/rawlane/bench/floor"
	"github.com/rawlane/rawlane/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// bench is what was asked for, and the programs that do it.
type bench struct {
	rig     *rig.Rig
	iters   int
	bytes   int
	rawlane string
	floor   string // empty without a C compiler
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("memory", flag.ExitOnError)
	rounds := flags.Int("rounds", 5, "rounds, in each of which all contestants run")
	iters := flags.Int("iters", 5000, "round trips per contestant and round")
	bytes := flags.Int("bytes", 64<<20, "bytes to send per contestant, size and round, of what goes one way")
	asJSON := flags.Bool("json", false, "print JSON lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *iters < 100 || *bytes < 1<<20 || *bytes > 1<<30 {
		return errors.New("want -rounds 1 or more, -iters 100 or more, -bytes 1048576 to 1073741824")
	}
	r, err := rig.New()
	if err != nil {
		return err
	}
	b := bench{rig: r, iters: *iters, bytes: *bytes}
	t := newTable()
	if err = b.prepare(ctx); err == nil {
		err = b.compete(ctx, t, *rounds)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if *asJSON {
		return t.printJSON(out)
	}
	t.print(out)
	t.verdicts(out)
	return nil
}

// prepare makes the programs, and has the kernel cut TCP's streams into frames, as a NIC does for a
// wire.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.rawlane, err = rig.Rawlane(ctx, b.rig.Dir()); err != nil {
		return err
	}
	if err := b.rig.WithoutOffloads(); err != nil {
		return err
	}
	b.floor, err = floor.Build(b.rig.Dir())
	if errors.Is(err, floor.ErrNoCompiler) {
		fmt.Fprintf(os.Stderr, "%v: the C rows are left out, and with them their ratios\n", err)
		return nil
	}
	return err
}

// compete runs the rounds. Contestants take turns, so that a slow moment of the machine meets all.
// The n-th results of rows that have equally many were measured together.
func (b *bench) compete(ctx context.Context, t *table, rounds int) error {
	for range rounds {
		for _, c := range contestants {
			if c.c && b.floor == "" {
				continue
			}
			if err := c.run(b, ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}
