package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

// barrierBench is one run of the barrier benchmark.
type barrierBench struct {
	place place
	algos algorithms
	mode  string
	iters int
	work  time.Duration
	limit time.Duration
	json  bool
	mpi   bool

	beside []*barrierResult // Open MPI's, if they were asked for
}

// Modes: where the nodes run.
const (
	modeThreads   = "threads"   // goroutines of this process
	modeProcesses = "processes" // a process for each
)

// barrierWork is what a node does between two barriers of the source's benchmark.
const barrierWork = 30 * time.Microsecond

func newBenchBarrierCommand() *cobra.Command {
	b := &barrierBench{algos: algorithms{"auto"}}
	cmd := &cobra.Command{
		Use:   "barrier [flags]",
		Short: "One barrier among all nodes",
		Long: `Measures barriers in two loops: with some work between one and the next, as in the paper, and without. Each node
takes the time of each of its barriers; the numbers are averages over the nodes, not those of one.

    Barrier    the mean, averaged over the nodes, in microseconds; so are min and max
    fastest    the mean of the node that waits least, and slowest of the one that waits longest
    network    the shortest wait of each barrier: that of the last one to come, which waits for messages alone
    skew       how much longer the first one to come waits
    model      what the LogP model predicts
    / MPI      the mean divided by Open MPI's of the same loop: with --compare-mpi

Algorithms: ` + schedule.Names + `.`,
		Args: noArguments,
		RunE: b.run,
	}
	b.place.flags(cmd)
	b.place.nicsFlag(cmd)
	f := cmd.Flags()
	f.Var(&b.algos, "algo", "algorithms, separated by commas")
	f.StringVar(&b.mode, "mode", "", "threads (all nodes in this process) or processes (default: threads on the fabric, else processes)")
	f.IntVar(&b.iters, "iters", 1000, "barriers in each loop, not counting those that warm up")
	f.DurationVar(&b.work, "work", barrierWork, "work between two barriers, in the first loop")
	f.DurationVar(&b.limit, "limit", barrier.DefaultLimit, "how long a node may be silent before it counts as down")
	f.BoolVar(&b.mpi, "compare-mpi", false, "measure Open MPI's barrier as well, over TCP on this machine")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	return cmd
}

func (b *barrierBench) validate() error {
	if b.iters < 1 || b.iters > maxBarriers {
		return misuse("--iters %d: want 1 to %d", b.iters, maxBarriers)
	}
	if b.work < 0 || b.limit <= 0 {
		return misuse("--work %v --limit %v: want 0 or more, and more than 0", b.work, b.limit)
	}
	if err := b.place.validate(); err != nil {
		return err
	}
	if b.mpi && b.place.here() && os.Getenv(envLocal) == "" {
		return misuse("--compare-mpi is for nodes on this machine")
	}
	switch {
	case b.mode == "" && b.place.kind == "fabric":
		b.mode = modeThreads
	case b.mode == "":
		b.mode = modeProcesses
	case b.mode != modeThreads && b.mode != modeProcesses:
		return misuse("--mode %q: want %s or %s", b.mode, modeThreads, modeProcesses)
	case b.mode == modeProcesses && b.place.kind == "fabric":
		return misuse("--mode processes: the fabric is in memory; give --link packet or ring")
	case b.mode == modeThreads && b.place.here():
		return misuse("--mode threads: --interface, --hostfile and --node are for a node in each process")
	}
	return nil
}

// maxBarriers bounds --iters: each node keeps the time of each barrier.
const maxBarriers = 1_000_000

func (b *barrierBench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if b.mpi {
		if err := b.compareMPI(ctx, cmd); err != nil {
			return err
		}
	}
	switch {
	case b.place.here():
		return b.runHere(ctx, cmd)
	case b.mode == modeThreads:
		return b.runThreads(ctx, cmd)
	}
	b.place.grace = b.limit + 2*time.Second
	return b.place.inNamespaces(ctx, cmd)
}

// runHere is one node of several, each in a process of its own.
func (b *barrierBench) runHere(ctx context.Context, cmd *cobra.Command) error {
	m, err := b.place.join(ctx)
	if err != nil {
		return err
	}
	r := &barrierRun{bench: b, ep: m.ep, host: thisHost(m.nic, m.ep.MaxPayload()+mcd.HeaderLen), cmd: cmd}
	err = r.all(ctx)
	if err != nil {
		err = fmt.Errorf("node %d: %w", m.ep.Node(), err)
	}
	return errors.Join(err, m.close())
}

// runThreads runs all nodes in this process.
func (b *barrierBench) runThreads(ctx context.Context, cmd *cobra.Command) error {
	nodes, closeAll, err := b.place.inThreads()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for k, e := range nodes {
		r := &barrierRun{bench: b, ep: e, host: thisHost("", e.MaxPayload()+mcd.HeaderLen), cmd: cmd}
		running.Go(func() {
			if err := r.all(ctx); err != nil {
				stop(fmt.Errorf("node %d: %w", k, err))
			}
		})
	}
	running.Wait()
	return errors.Join(context.Cause(ctx), closeAll())
}

// algorithm returns one of --algo, spread over the networks, and with Auto's model that of this place.
func (b *barrierBench) algorithm(name string) schedule.Algorithm {
	a, _ := schedule.Parse(name) // as validate did
	nics := b.place.nics
	if name == "auto" {
		return schedule.Auto(b.model()...)
	}
	if nics > 1 && !strings.Contains(name, "stripe:") && !strings.Contains(name, "redundant:") {
		a = schedule.Stripe(a, nics)
	}
	return a
}

// model is what messages cost here, one for each network.
func (b *barrierBench) model() (nics []schedule.LogP) {
	p := localCosts[b.place.kind]
	if p == (schedule.LogP{}) {
		p = schedule.DefaultLogP
	}
	p.Cores = runtime.NumCPU()
	if b.place.here() && os.Getenv(envLocal) == "" {
		p = schedule.DefaultLogP
	}
	for range b.place.nics {
		nics = append(nics, p)
	}
	return nics
}

// localCosts are those of nodes that share a machine, as measured by bench logp.
var localCosts = map[string]schedule.LogP{
	"fabric": {Os: 250 * time.Nanosecond, L: 0, Or: 100 * time.Nanosecond, Copy: 150 * time.Nanosecond, Switch: 500 * time.Nanosecond},
	"ring":   {Os: 1100 * time.Nanosecond, L: 0, Or: 300 * time.Nanosecond, Copy: 700 * time.Nanosecond, Switch: 2 * time.Microsecond},
	"packet": {Os: 1100 * time.Nanosecond, L: 0, Or: 1200 * time.Nanosecond, Copy: 700 * time.Nanosecond, Switch: 2 * time.Microsecond},
}
