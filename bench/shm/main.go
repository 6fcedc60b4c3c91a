//go:build linux

// Command shm answers: what do processes of one host gain by shared memory, and how close is it to
// Open MPI's? It prints half a round trip, the rate of a stream, and barriers, over rawlane's links
// between processes of this host, and for Open MPI over its shared memory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/mpi"
)

var nodesFlag = flag.String("nodes", "2,4,8,16,32", "numbers of processes in the barriers")

func main() {
	b := harness.Bench{Name: "shm", Link: "shared memory between processes of this host",
		Rounds: 5, Iters: 20000, MinIters: 100, Run: run}
	b.Main()
}

// Names of rows.
const (
	openMPI = "Open MPI, shared memory"
	ours    = "rawlane, shm"
	beside  = "rawlane, ring, and shm beside it"
	ring    = "rawlane, ring"
	memory  = "rawlane, fabric, one process"
)

// size is the payload of the round trips, in bytes; sizes are those of the streams.
const size = 64

var sizes = []int{64, 1400, 8000}

// algorithms are those of the barriers.
var algorithms = []string{"shuffle", "tree:2", "tree:4", "concurrent", "auto"}

// Limits, and how many of -iters one barrier stands for: those of 32 processes take long.
const (
	roundTripLimit = 3.0
	rateLimit      = 0.7
	barrierLimit   = 0.8
	barrierIters   = 10
)

// bench is the benchmark, and its tables.
type bench struct {
	*harness.Bench
	mpi      *mpi.MPI // nil: none is installed
	trips    *harness.Table
	rates    []*harness.Table
	barriers []*harness.Table
	nodes    []int
}

func run(ctx context.Context, hb *harness.Bench) (r harness.Report, err error) {
	b := &bench{Bench: hb}
	if b.nodes, err = harness.ParseNodes(*nodesFlag, 64); err != nil {
		return r, err
	}
	r.Tables = b.newTables()
	if b.Rows {
		b.mpi = new(mpi.MPI)
		return harness.RowsOf(b.variants()), nil
	}
	if err := b.Build(ctx); err != nil {
		return r, err
	}
	if b.mpi, err = mpi.Find(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "shm: %v; the rows of Open MPI are left out, and with them their ratios\n", err)
	}
	if err := b.RunRounds(ctx, b.variants()); err != nil {
		return r, err
	}
	r.Targets = b.targets()
	return r, nil
}

func (b *bench) newTables() (all []*harness.Table) {
	b.trips = harness.NewTable(b.trip(), "us", size, b.Rounds)
	b.trips.AddRatio("/ MPI", "ratio_to_mpi", openMPI)
	all = append(all, b.trips)
	for _, n := range sizes {
		t := harness.NewTable(fmt.Sprintf("Messages of %d bytes a second from one core", n),
			"messages_per_s", n, b.Rounds)
		t.AddRatio("/ fabric", "ratio_to_fabric", memory)
		b.rates, all = append(b.rates, t), append(all, t)
	}
	for _, n := range b.nodes {
		t := harness.NewTable(fmt.Sprintf("Barrier among %d processes, us", n), "us", 0, b.Rounds)
		t.AddRatio("/ MPI", "ratio_to_mpi", openMPI)
		b.barriers, all = append(b.barriers, t), append(all, t)
	}
	return all
}

func (b *bench) trip() string {
	return fmt.Sprintf("Half a round trip of %d bytes, each process on a core of its own, us", size)
}

func (b *bench) variants() (all []harness.Variant) {
	iters := strconv.Itoa(b.Iters)
	latency := func(name string, flags ...string) {
		args := append([]string{"latency", "--size", strconv.Itoa(size), "--iters", iters}, flags...)
		all = append(all, b.rawlane(b.trips, name, "p50_us", args))
	}
	if b.mpi != nil {
		all = append(all, harness.Variant{Name: openMPI, MayFail: true, Run: func(ctx context.Context) error {
			ns, err := b.mpi.PingPong(ctx, mpi.SHM, size, b.Iters)
			if err == nil {
				b.trips.Add(openMPI, float64(ns[len(ns)/2])/1e3)
			}
			return err
		}})
	}
	latency(ours, "--link", "shm")
	latency(beside, "--link", "ring", "--segment", "bench")
	latency(ring, "--link", "ring")
	latency(memory, "--link", "fabric")
	for i, t := range b.rates {
		for _, v := range []struct{ name, link string }{{ours, "shm"}, {memory, "fabric"}} {
			all = append(all, b.rawlane(t, v.name, "msgs_per_s", []string{"rate", "--link", v.link, "--mtu", "9000",
				"--size", strconv.Itoa(sizes[i]), "--iters", strconv.Itoa(20 * b.Iters)}))
		}
	}
	for i, t := range b.barriers {
		all = append(all, b.barrier(t, b.nodes[i]))
	}
	return all
}

// rawlane runs the command and adds one of the numbers that it prints.
func (b *bench) rawlane(t *harness.Table, name, key string, args []string) harness.Variant {
	return harness.Variant{Name: name, Run: func(ctx context.Context) error {
		line, err := harness.Line[map[string]any](ctx, &b.Programs, args...)
		if err != nil {
			return err
		}
		got, ok := line[key].(float64)
		if !ok {
			return fmt.Errorf("no %s in the result", key)
		}
		t.Add(name, got)
		return nil
	}}
}

// barrier runs the barriers among so many processes, with Open MPI's beside them.
func (b *bench) barrier(t *harness.Table, nodes int) harness.Variant {
	args := []string{"barrier", "--work", "0s", "--link", "shm", "--mode", "processes",
		"--algo", strings.Join(algorithms, ","), "--nodes", strconv.Itoa(nodes),
		"--iters", strconv.Itoa(max(b.Iters/barrierIters, 1))}
	var rows []string
	for _, a := range algorithms {
		rows = append(rows, ours+", "+a)
	}
	var others harness.Others
	if b.mpi != nil {
		others = harness.Others{Name: fmt.Sprintf("%s, %d processes", openMPI, nodes), Rows: []string{openMPI},
			Flags: []string{"--compare-mpi", "--mpi-transport", "shm"}}
		rows = append(rows, openMPI)
	}
	type line struct {
		Algo string  `json:"algo"`
		Loop string  `json:"loop"`
		Mean float64 `json:"mean_us"`
	}
	return harness.Variant{Name: ours + ", barrier", Rows: rows, Run: func(ctx context.Context) error {
		lines, err := harness.LinesBeside[line](ctx, b.Bench, &t.Rows, &others, args...)
		for _, l := range lines {
			switch {
			case l.Loop != "tight":
			case l.Algo == "openmpi":
				t.Add(openMPI, l.Mean)
			default:
				t.Add(ours+", "+l.Algo, l.Mean)
			}
		}
		return err
	}}
}

func (b *bench) targets() []harness.Target {
	trip := b.trips.Find(ours)
	all := []harness.Target{{
		What: fmt.Sprintf("a round trip at most %.0f x Open MPI's", roundTripLimit),
		Got:  trip.Over(b.trips.Find(openMPI)), Limit: roundTripLimit,
	}}
	for i, t := range b.rates {
		all = append(all, harness.Target{
			What: fmt.Sprintf("a stream of %d bytes at least %.1f x the fabric's", sizes[i], rateLimit),
			Got:  t.Find(ours).Over(t.Find(memory)), Limit: rateLimit, AtLeast: true,
		})
	}
	for i, t := range b.barriers {
		var best *harness.Row
		for _, r := range t.Rows {
			if r.Name != openMPI && (best == nil || r.Median() < best.Median()) {
				best = r
			}
		}
		if b.nodes[i] == 32 {
			all = append(all, harness.Target{
				What: fmt.Sprintf("a barrier of 32 at most %.1f x Open MPI's", barrierLimit),
				Got:  best.Over(t.Find(openMPI)), Limit: barrierLimit, Note: best.Name + ", ",
			})
		}
	}
	return all
}
