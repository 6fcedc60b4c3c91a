//go:build linux

// Package harness is what the benchmarks of this folder share: the main function and its flags,
// rounds in which the variants take turns, tables of medians and ratios, targets, and the programs
// that are compared.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// Bench is a benchmark. Flags of its own are package flag's.
type Bench struct {
	Name          string
	Rounds, Iters int // the defaults of -rounds and -iters, and in Run what the user gave
	MinIters      int
	Run           func(context.Context, *Bench) (Report, error)
}

// Main runs the benchmark and exits.
func (b *Bench) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.main(ctx)
	stop()
	Exit(b.Name, err)
}

// Exit ends the program, with status 1 if there is an error.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *Bench) main(ctx context.Context) error {
	flag.CommandLine.Init(b.Name, flag.ExitOnError)
	flag.IntVar(&b.Rounds, "rounds", b.Rounds, "rounds, in each of which all variants run; medians count")
	flag.IntVar(&b.Iters, "iters", b.Iters, "operations of each variant in a round")
	asJSON := flag.Bool("json", false, "print JSON lines")
	flag.Parse()
	if b.Rounds < 1 || b.Iters < b.MinIters {
		return fmt.Errorf("want -rounds 1 or more, -iters %d or more", b.MinIters)
	}
	r, err := b.Run(ctx, b)
	if err != nil {
		return err
	}
	if !*asJSON {
		r.print(os.Stdout)
		return nil
	}
	lines := json.NewEncoder(os.Stdout)
	var errs []error
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			errs = append(errs, lines.Encode(t.line(row)))
		}
	}
	return errors.Join(errs...)
}

// Variant is one of the programs that a benchmark compares. Run adds its results of a round to a
// table.
type Variant struct {
	Name string
	Run  func(context.Context) error
}

// RunRounds runs the variants in turns, so that a slow moment of the machine slows all of them.
func (b *Bench) RunRounds(ctx context.Context, all []Variant) error {
	for range b.Rounds {
		for _, v := range all {
			if err := v.Run(ctx); err != nil {
				return fmt.Errorf("%s: %w", v.Name, err)
			}
		}
	}
	return nil
}
