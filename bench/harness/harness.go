//go:build linux

// Package harness is what the benchmarks of this folder share: the main function and its flags,
// rounds in which the variants take turns, medians, tables, targets, and runs of the rawlane
// command.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// Bench is a benchmark: its flags beside those that all have, and how it runs.
type Bench struct {
	Name     string
	Rounds   int // the default of -rounds
	Iters    int // the default of -iters
	MinIters int
	Flags    func(*flag.FlagSet) // may be nil
	Run      func(context.Context, Options) (Report, error)
}

// Options are the flags that all benchmarks have.
type Options struct {
	Rounds, Iters int
}

// Report is the result of a benchmark.
type Report interface {
	JSON() []any    // lines
	Text(io.Writer) // a table and the targets
}

// Main runs the benchmark and exits.
func (b *Bench) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.main(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", b.Name, err)
		os.Exit(1)
	}
}

func (b *Bench) main(ctx context.Context, args []string, out io.Writer) error {
	var o Options
	f := flag.NewFlagSet(b.Name, flag.ExitOnError)
	f.IntVar(&o.Rounds, "rounds", b.Rounds, "rounds, in each of which all variants run; medians count")
	f.IntVar(&o.Iters, "iters", b.Iters, "operations of each variant in a round")
	asJSON := f.Bool("json", false, "print JSON lines")
	if b.Flags != nil {
		b.Flags(f)
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if o.Rounds < 1 || o.Iters < b.MinIters {
		return fmt.Errorf("want -rounds 1 or more, -iters %d or more", b.MinIters)
	}
	r, err := b.Run(ctx, o)
	if err != nil {
		return err
	}
	if !*asJSON {
		r.Text(out)
		return nil
	}
	lines := json.NewEncoder(out)
	var errs []error
	for _, v := range r.JSON() {
		errs = append(errs, lines.Encode(v))
	}
	return errors.Join(errs...)
}
