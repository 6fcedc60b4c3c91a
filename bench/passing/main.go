//go:build linux

// Command passing answers: how does package mpi compare with Open MPI and MPICH over TCP, and with
// the FIFOs and remote writes that it is built on? Two ranks exchange messages between two
// namespaces, and more have collective operations, with a namespace each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/bench/netpair"
	"github.com/rawlane/rawlane/bench/peers"
)

var (
	nodesFlag = flag.String("nodes", "2,8,32", "numbers of ranks in the collective operations")
	bytes     = flag.Int("bytes", 512<<20, "bytes that each variant sends one way, for each size and round")
)

func main() {
	b := harness.Bench{Name: "passing", Link: "a veth pair between two namespaces, and a bridge between more",
		Rounds: 5, Iters: 5000, MinIters: 100, Run: run}
	b.Main()
}

// Names of rows. Those of other MPIs are their names.
const (
	ours = "rawlane, mpi"
	push = "rawlane, push"
	put  = "rawlane, put"
	goes = "Go, net package, TCP"
)

// Sizes, in bytes.
const (
	short = 4
	long  = 1 << 20
	sum   = 8
)

// sizes are those of the round trips, putSizes of what is written.
var (
	sizes    = []int{short, 1024, 65536, long}
	putSizes = []int{short, 65536}
)

// collective is an operation of all ranks, and how many bytes it has.
type collective struct {
	name string
	size int
}

var collectives = []collective{{"allreduce", sum}, {"alltoall", 64}, {"bcast", 1024}, {"barrier", 0}}

// Limits.
const (
	pushLimit      = 1.4
	openMPILimit   = 0.6
	mpichLimit     = 0.7
	putLimit       = 0.95
	streamLimit    = 1.0
	allreduceLimit = 0.5
)

// passing is the benchmark, the programs that it compares, and its tables.
type passing struct {
	*harness.Bench
	pair  *netpair.Pair
	hosts *peers.Hosts
	mpis  []*peers.MPI
	nodes []int

	trips    map[int]*harness.Table // by size
	puts     map[int]*harness.Table // likewise
	oneWay   *harness.Table
	bothWays *harness.Table
	together map[string]*harness.Table // by operation and ranks
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	p := &passing{Bench: hb}
	if p.nodes, err = harness.ParseNodes(*nodesFlag, 64); err != nil {
		return r, err
	}
	if *bytes < long || *bytes > 1<<30 {
		return r, harness.Misuse("-bytes %d: want %d to %d", *bytes, long, 1<<30)
	}
	r.Tables = p.makeTables()
	if hb.Rows {
		for _, name := range []string{mpi.OpenMPI, mpi.MPICH} {
			p.mpis = append(p.mpis, &peers.MPI{MPI: &mpi.MPI{Name: name}})
		}
		return harness.RowsOf(p.variants()), nil
	}
	if p.pair, err = netpair.New(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.pair.Close()) }()
	if err := p.Build(ctx); err != nil {
		return r, err
	}
	for _, find := range []func(context.Context, string) (*peers.MPI, error){peers.OpenMPI, peers.MPICH} {
		m, err := find(ctx, p.Dir)
		if err != nil {
			p.LeftOut(err)
			continue
		}
		p.mpis = append(p.mpis, m)
	}
	if p.hosts, err = peers.NewHosts(ctx, p.pair.Bed(), 2, p.pair.Cores(), p.Dir); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.hosts.Close()) }()
	if err := p.RunRounds(ctx, p.variants()); err != nil {
		return r, err
	}
	r.Targets = p.targets()
	return r, nil
}

func (p *passing) makeTables() (all []*harness.Table) {
	add := func(title, key string, size int) *harness.Table {
		t := harness.NewTable(title, key, size, p.Rounds)
		for _, name := range []string{mpi.OpenMPI, mpi.MPICH} {
			t.AddRatio("/ "+name, "ratio_to_"+key+"_"+name, name)
		}
		all = append(all, t)
		return t
	}
	p.puts = map[int]*harness.Table{}
	p.trips, p.together = map[int]*harness.Table{}, map[string]*harness.Table{}
	for _, size := range sizes {
		p.trips[size] = add(fmt.Sprintf("Half a round trip of %d bytes, us", size), "us", size)
	}
	for _, size := range putSizes {
		p.puts[size] = add(fmt.Sprintf("A put of %d bytes and the flush behind it, us", size), "us", size)
	}
	p.oneWay = add("Messages of 1 MiB one way, 64 at a time, MB/s", "mb_per_s", long)
	p.bothWays = add("Messages of 1 MiB both ways, 64 at a time each, MB/s", "mb_per_s", long)
	for _, c := range collectives {
		for _, n := range p.nodes {
			title := fmt.Sprintf("%s of %d bytes among %d ranks, us", c.name, c.size, n)
			if c.size == 0 {
				title = fmt.Sprintf("%s among %d ranks, us", c.name, n)
			}
			p.together[key(c.name, n)] = add(title, "us", c.size)
		}
	}
	return all
}

func key(operation string, ranks int) string { return operation + " " + strconv.Itoa(ranks) }

// best returns the best of the other MPIs' rows in a table.
func best(t *harness.Table, better func(a, b *harness.Row) bool) (row *harness.Row) {
	for _, r := range t.Rows {
		if slices.Contains([]string{mpi.OpenMPI, mpi.MPICH}, r.Name) && (row == nil || better(r, row)) {
			row = r
		}
	}
	return row
}

func (p *passing) targets() []harness.Target {
	trip := p.trips[short]
	more := func(a, b *harness.Row) bool { return a.Median() > b.Median() }
	less := func(a, b *harness.Row) bool { return a.Median() < b.Median() }
	of := func(t *harness.Table, name string) float64 { return t.Find(ours).Over(t.Find(name)) }
	all := []harness.Target{
		{What: "a round trip of 4 bytes at most 1.4 x the push below it", Got: of(trip, push), Limit: pushLimit},
		{What: "a round trip of 4 bytes at most 0.6 x Open MPI's", Got: of(trip, mpi.OpenMPI), Limit: openMPILimit},
		{What: "a round trip of 4 bytes at most 0.7 x MPICH's", Got: of(trip, mpi.MPICH), Limit: mpichLimit},
		{
			What: "messages of 1 MiB at least 0.95 x the put below them",
			Got:  of(p.oneWay, put), Limit: putLimit, AtLeast: true,
		},
		{
			What: "messages of 1 MiB at least 1.0 x the better MPI's", Limit: streamLimit, AtLeast: true,
			Got: p.oneWay.Find(ours).Over(best(p.oneWay, more)),
		},
	}
	for _, n := range p.nodes {
		t := p.together[key("allreduce", n)]
		all = append(all, harness.Target{
			What:  fmt.Sprintf("an allreduce of 8 bytes among %d at most 0.5 x the better MPI's", n),
			Got:   t.Find(ours).Over(best(t, less)),
			Limit: allreduceLimit,
		})
	}
	return all
}
