//go:build linux

// Command memory answers: how do rawlane's remote writes and FIFOs compare with plain messages,
// with a program of TCP sockets in C, and with the frames that the machine carries?
package main

import (
	"context"
	"errors"
	"flag"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/netpair"
)

var bytes = flag.Int("bytes", 64<<20, "bytes that each variant sends one way, for each size and round")

func main() {
	b := harness.Bench{Name: "memory", Link: "a veth pair between two namespaces, without offloads or trains",
		Rounds: 5, Iters: 5000, MinIters: 100, Run: run}
	b.Main()
}

// bench is the benchmark, the programs that it compares, and its tables.
type bench struct {
	*harness.Bench
	pair *netpair.Pair

	latency, records, oneWay, bothWays, small *table
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	if *bytes < 1<<20 || *bytes > 1<<30 {
		return r, harness.Misuse("want -bytes 1048576 to 1073741824")
	}
	b := bench{Bench: hb}
	if hb.Rows {
		b.makeTables()
		return harness.RowsOf(b.variants()), nil
	}
	if b.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.pair.Close()) }()
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	// The kernel cuts TCP's streams into frames, as a NIC does for a wire.
	if err := b.pair.WithoutOffloads(); err != nil {
		return r, err
	}
	b.makeTables()
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	return b.report(), nil
}
