//go:build linux

// Command compare answers: how does rawlane stand beside what a user would pick instead? In one run
// it measures the least that the kernel allows in C, Go's sockets, Open MPI, MPICH, UCX and
// libfabric where they are installed, and each of rawlane's links. It prints latency over sizes,
// calls, bandwidth, rate and barriers, as medians and spread of rounds in which all take turns, and
// writes them as Markdown and SVG.
//
//	go run ./bench/compare --quick
//	go run ./bench/compare -out bench/RESULTS.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/bench/netpair"
	"github.com/rawlane/rawlane/bench/peers"
)

var (
	quick = flag.Bool("quick", false, "fewer rounds, sizes and members: some minutes in place of an hour")
	out   = flag.String("out", "", "write the results to this Markdown file, and pictures beside it")
)

func main() {
	if part := os.Getenv(envGo); part != "" {
		harness.Exit("compare", goPart(part, os.Args[1:]))
	}
	b := harness.Bench{Name: "compare", Link: "a veth pair between two namespaces; more by a Linux bridge",
		Rounds: 5, Iters: 5000, MinIters: 10, Run: run}
	b.Main()
}

// plan is what is measured.
type plan struct {
	sizes   []int // of messages that go there and back
	long    []int // of long ones
	members []int // of barriers
	bytes   int   // of a stream of long messages
	small   int   // messages of a stream of small ones
}

// smallSize is the size of the small messages, in bytes.
const smallSize = 64

var (
	full  = plan{[]int{4, 64, 256, 1024, 1400}, []int{65536, 1 << 20}, []int{2, 4, 8, 16, 32}, 128 << 20, 500_000}
	brief = plan{[]int{64, 1400}, []int{65536}, []int{2, 8, 32}, 128 << 20, 500_000} // streams of 100 ms
)

// compare is the run: what is measured, by which programs, and the results.
type compare struct {
	*harness.Bench
	plan
	pair    *netpair.Pair
	barrier string // the program of bench/barrier
	hosts   *peers.Hosts
	tools   peers.Tools
	mpis    []*peers.MPI
	links   []string

	barrierRows []string // of bench/barrier, for -rows

	latency, calls, bandwidth, rate, barriers *grid
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	c := &compare{Bench: hb, plan: full}
	if *quick {
		c.plan = brief
		given := map[string]bool{}
		flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["rounds"] {
			hb.Rounds = 2
		}
		if !given["iters"] {
			hb.Iters = 1000
		}
	}
	c.makeGrids()
	if hb.Rows {
		return c.allRows(ctx)
	}
	if *out != "" {
		if err := checkFile(*out); err != nil {
			return r, err
		}
	}
	if c.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.pair.Close()) }()
	if err := c.prepare(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.hosts.Close()) }()
	if err := c.RunRounds(ctx, c.variants()); err != nil {
		return r, err
	}
	for _, g := range c.grids() {
		r.Tables = append(r.Tables, g.table(hb.Rounds))
	}
	if *out != "" {
		r.Save = func() error { return c.write(*out) }
	}
	return r, nil
}

// prepare builds the programs, and finds what is installed.
func (c *compare) prepare(ctx context.Context) (err error) {
	if err := c.Build(ctx); err != nil {
		return err
	}
	c.barrier = filepath.Join(c.Dir, "barrier")
	if err := harness.BuildTool(ctx, "bench/barrier", c.barrier); err != nil {
		return err
	}
	if c.links, err = c.Programs.Links(ctx); err != nil {
		return err
	}
	c.tools = peers.Tools{Bed: c.pair.Bed(), Cores: c.pair.Cores()}
	for _, find := range []func(context.Context, string) (*peers.MPI, error){peers.OpenMPI, peers.MPICH} {
		m, err := find(ctx, c.Dir)
		if err != nil {
			c.LeftOut(err)
			continue
		}
		c.mpis = append(c.mpis, m)
	}
	c.hosts, err = peers.NewHosts(ctx, c.pair.Bed(), 2, c.pair.Cores(), c.Dir)
	return err
}

// allRows are those of a machine where everything is installed.
func (c *compare) allRows(ctx context.Context) (r harness.Report, err error) {
	if err := c.MakeDir(); err != nil {
		return r, err
	}
	c.Programs.Rawlane, c.barrier = filepath.Join(c.Dir, "rawlane"), filepath.Join(c.Dir, "barrier")
	err = errors.Join(harness.BuildTool(ctx, "cmd/rawlane", c.Programs.Rawlane),
		harness.BuildTool(ctx, "bench/barrier", c.barrier))
	if err == nil {
		c.links, err = c.Programs.Links(ctx)
	}
	if err == nil {
		c.barrierRows, err = c.askBarrierRows(ctx)
	}
	for _, name := range []string{mpi.OpenMPI, mpi.MPICH} {
		c.mpis = append(c.mpis, &peers.MPI{MPI: &mpi.MPI{Name: name}})
	}
	return harness.RowsOf(c.variants()), err
}

func (c *compare) grids() []*grid {
	return []*grid{c.latency, c.calls, c.bandwidth, c.rate, c.barriers}
}

func (c *compare) makeGrids() {
	c.latency = newGrid("latency", "Half a round trip, us", "bytes", c.sizes, false)
	c.calls = newGrid("calls", fmt.Sprintf("Calls of %d bytes, whole round trips, us", smallSize), "bytes",
		[]int{smallSize}, false)
	c.bandwidth = newGrid("bandwidth", "Long messages one way, MB/s", "bytes", c.long, true)
	c.rate = newGrid("rate", fmt.Sprintf("Messages of %d bytes one way, million/s", smallSize), "bytes",
		[]int{smallSize}, true)
	c.barriers = newGrid("barrier", "A barrier, us", "members", c.members, false)
}

// variants are all programs, each of which takes a turn in every round. One that fails is left out
// from then on; rawlane's own links, but for those that this machine may lack, must not.
func (c *compare) variants() []harness.Variant {
	all := slices.Concat(c.inC(), c.others(), c.ours(), c.connections(), c.allBarriers())
	for i := range all {
		all[i].MayFail = !slices.Contains(required, all[i].Name)
	}
	return all
}
