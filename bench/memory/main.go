//go:build linux

// Command memory answers: how do rawlane's remote writes and FIFOs compare with plain messages,
// with a program of TCP sockets in C, and with the frames that the machine carries?
package main

import (
	"context"
	"errors"
	"flag"

	"github.com/rawlane/rawlane/bench/baseline"
	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

func main() {
	bytes := 64 << 20
	b := harness.Bench{
		Name: "memory", Rounds: 5, Iters: 5000, MinIters: 100,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&bytes, "bytes", bytes, "bytes that each variant sends one way, for each size and round")
		},
		Run: func(ctx context.Context, o harness.Options) (harness.Report, error) { return run(ctx, o, bytes) },
	}
	b.Main()
}

// bench is the programs that are compared.
type bench struct {
	pair    *netpair.Pair
	iters   int
	bytes   int
	rawlane harness.Rawlane
	program string // the C program; "" without a compiler
}

func run(ctx context.Context, o harness.Options, bytes int) (harness.Report, error) {
	if bytes < 1<<20 || bytes > 1<<30 {
		return nil, errors.New("want -bytes 1048576 to 1073741824")
	}
	p, err := netpair.New()
	if err != nil {
		return nil, err
	}
	b := bench{pair: p, iters: o.Iters, bytes: bytes}
	t := newTable()
	if err = b.prepare(ctx); err == nil {
		err = b.rounds(ctx, t, o.Rounds)
	}
	return t, errors.Join(err, p.Close())
}

// prepare builds the programs, and makes the kernel cut TCP's streams into frames, as a NIC does
// for a wire.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.rawlane, err = harness.BuildRawlane(ctx, b.pair.Dir()); err != nil {
		return err
	}
	if err := b.pair.WithoutOffloads(); err != nil {
		return err
	}
	b.program, err = baseline.BuildIfPossible(b.pair.Dir())
	return err
}

// rounds runs the variants in turns, so that a slow moment of the machine slows all of them. The
// n-th results of rows with equally many results were measured together.
func (b *bench) rounds(ctx context.Context, t *table, rounds int) error {
	for range rounds {
		for _, v := range variants {
			if v.c && b.program == "" {
				continue
			}
			if err := v.run(b, ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}
