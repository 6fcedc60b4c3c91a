//go:build linux

package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

// inC begins the names of the C program's ways to do barriers.
const inC = "C, "

// cVariant is a way to do barriers in C. More processes than cores cannot spin: each would keep the
// others from running. They give the core away between looks, as rawlane does, or sleep.
type cVariant struct {
	name, way string
	cores     bool // with a core for each process alone
	two       bool // with two processes alone
	bridge    bool // even for two, which otherwise are joined by a pair, as rawlane's are
}

var cVariants = []cVariant{
	{name: "C, blocking", way: "block"},
	{name: "C, yielding", way: "yield"},
	{name: "C, yielding, ring", way: "ring-yield"},
	{name: "C, spinning", way: "spin", cores: true},
	{name: "C, spinning, ring", way: "ring", cores: true},
	{name: "C, spinning, by a bridge", way: "spin", two: true, cores: true, bridge: true},
	{name: "C, exchange, spinning", way: "exchange-spin", two: true, cores: true},
	{name: "C, exchange, spinning, ring", way: "exchange-ring", two: true, cores: true},
}

// runs reports whether the variant is for so many processes on so many cores.
func (c *cVariant) runs(nodes, cores int) bool {
	return (!c.two || nodes == 2) && (!c.cores || nodes <= cores)
}

// runC returns the mean time of a barrier in C, in us, with one process per namespace: each on a
// core of its own if there are enough, as rawlane's are.
func (b *bench) runC(ctx context.Context, n int, c cVariant) (mean float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cores := harness.Cores(n)
	bed, err := testbed.New(testbed.Config{Nodes: n, Bridge: c.bridge})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	ranks := make([]*harness.Program, n)
	for k := range ranks {
		ranks[k], err = harness.Start(ctx, bed, k, cores, b.Programs.C, "barrier", testbed.Interface(0),
			strconv.Itoa(k), strconv.Itoa(n), strconv.Itoa(b.Iters), c.way)
		if err != nil {
			return 0, err
		}
	}
	for _, r := range ranks {
		if err := r.AwaitReady(); err != nil {
			return 0, err
		}
	}
	for _, r := range ranks {
		r.Begin()
	}
	ns, err := ranks[0].Numbers(1)
	for _, r := range ranks[1:] {
		_, ended := r.Numbers(0)
		err = errors.Join(err, ended)
	}
	if err != nil {
		return 0, err
	}
	return ns[0] / 1e3, nil
}
