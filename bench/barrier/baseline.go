//go:build linux

package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

// Names of the C program's ways to wait.
const (
	cBlocking = "C, blocking"
	cSpinning = "C, spinning"
	cRing     = "C, spinning, ring"
)

// cVariant is a way to do barriers in C. More processes than cores cannot spin: each would keep the
// others from running.
type cVariant struct {
	name, wait string
	only       int  // with so many processes; 0: with any number
	bridge     bool // even for two, which otherwise are joined by a pair, as rawlane's are
}

var cVariants = []cVariant{
	{cBlocking, "block", 0, false},
	{cSpinning, "spin", 2, false},
	{cRing, "ring", 2, false},
	{"C, spinning, by a bridge", "spin", 2, true},
}

// runC returns the mean time of a barrier in C, in us, with one process per namespace: each on a
// core of its own if there are enough, as rawlane's are.
func (b *bench) runC(ctx context.Context, n int, c cVariant) (mean float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cores, err := harness.Cores(n)
	if err != nil {
		return 0, err
	}
	bed, err := testbed.New(testbed.Config{Nodes: n, Bridge: c.bridge})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	ranks := make([]*harness.Program, n)
	for k := range ranks {
		ranks[k], err = harness.Start(ctx, bed, k, cores, b.programs.C, "barrier", testbed.Interface(0),
			strconv.Itoa(k), strconv.Itoa(n), strconv.Itoa(b.Iters), c.wait)
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
