package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
)

// barrierBench measures barriers.
type barrierBench struct {
	bench
	algos       []string
	work        time.Duration
	peerTimeout time.Duration
	table       string // a file of rawlane tune
	mpi         bool
	transports  []string // of Open MPI

	openMPI []*barrierResult // with --compare-mpi
	tuned   *schedule.Table  // with --table
}

const (
	// maxBarriers bounds --iters: each node keeps the time of each barrier.
	maxBarriers = 1_000_000
	// barrierWork is the work between two barriers in the paper's benchmark.
	barrierWork = 30 * time.Microsecond
	// maxWork bounds --work: an interrupt is noticed behind it.
	maxWork = time.Second
	// barrierWarmUp is the least number of barriers that do not count.
	barrierWarmUp = 20
)

// auto is the algorithm that a group chooses by itself.
const auto = "auto"

// barrierLoops are the loops of the benchmark.
var barrierLoops = []string{"work", "tight"}

func newBarrierCommand() *cobra.Command {
	b := &barrierBench{algos: []string{auto}, bench: bench{
		name:  "barrier",
		short: "One barrier among all nodes",
		long: `Measures barriers in two loops: with some work between one and the next, as in the paper, and
without. Each node takes the time of each of its barriers, in microseconds; the numbers are those
of all barriers of all nodes.

    mean       of all barriers of all nodes; so are p50, p99, min and max
    fastest    the mean of the node that waits least, and slowest of the one that waits longest
    network    the shortest wait of each barrier: that of the last one to come, which waits for messages alone
    skew       how much longer the first one to come waits
    model      what the LogP model predicts
    / MPI      the mean divided by Open MPI's of the same loop: with --compare-mpi

With --table, the lines of auto say whether the table has a row for the nodes, or the model has chosen.

Algorithms: ` + schedule.Names + `.
With offload, node 0 counts in the path of its NIC (XDP) where it may.

  rawlane bench barrier --nodes 8 --link ring
  rawlane bench barrier --nodes 8 --link ring --algo shuffle,tree:3,concurrent,auto
  rawlane bench barrier --nodes 4 --link ring --compare-mpi`,
		iters: 1000,
	}}
	cmd := b.command(maxBarriers, "barriers in each loop, not counting those that warm up", b.prepare, b.part)
	b.cluster.NICsFlag(cmd)
	b.cluster.ModeFlag(cmd)
	f := cmd.Flags()
	cli.AlgorithmsFlag(cmd, &b.algos, "algo", "algorithms, separated by commas")
	b.alike = []string{"algo", "iters", "work", "nics"}
	f.DurationVar(&b.work, "work", barrierWork, "work between two barriers, in the first loop")
	f.DurationVar(&b.peerTimeout, "peer-timeout", launch.AskTimeout,
		"how long a node may be silent before it counts as down")
	f.StringVar(&b.table, "table", "", "a file of rawlane tune, by which auto chooses")
	f.BoolVar(&b.mpi, "compare-mpi", false, "measure Open MPI's barrier as well, on this machine")
	b.transports = []string{mpi.TCP}
	cli.ListFlag(f, &b.transports, "mpi-transport", "tcp,shm",
		"what Open MPI sends by; ratios are to the first: tcp (over the loopback), shm (shared memory)",
		oneOrBoth(mpi.TCP, mpi.SHM))
	cli.Choice(cmd, "mpi-transport", mpi.TCP, mpi.SHM)
	return cmd
}

func (b *barrierBench) prepare(cmd *cobra.Command) error {
	switch {
	case b.work < 0 || b.work > maxWork:
		return cli.Misuse("--work %v: want 0 to %v", b.work, maxWork)
	case b.peerTimeout < time.Millisecond:
		return cli.Misuse("--peer-timeout %v: want %v or more", b.peerTimeout, time.Millisecond)
	case !b.mpi && cmd.Flags().Changed("mpi-transport"):
		return cli.Misuse("--mpi-transport: is for --compare-mpi")
	case b.table != "" && !slices.Contains(b.algos, auto):
		return cli.Misuse("--table %s: is for --algo %s (%s is given)", b.table, auto, strings.Join(b.algos, ","))
	}
	b.cluster.Grace = b.peerTimeout + reportTime
	if b.table != "" {
		var err error
		if b.tuned, err = barrier.ReadTable(b.table); err != nil {
			return fmt.Errorf("--table: %w (rawlane tune --out writes one)", err)
		}
	}
	if !b.mpi {
		return nil
	}
	if b.cluster.Here() && os.Getenv(cli.EnvLocal) == "" {
		return cli.Misuse("--compare-mpi is for nodes on this machine")
	}
	return b.compareMPI(cmd)
}

// part measures every algorithm, and shows the results below those of Open MPI.
func (b *barrierBench) part(ctx context.Context, n *node) error {
	x, err := cluster.OpenExchanger(n.ep, cluster.ExchangerConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	service, closeUnit, err := b.cluster.OpenBarriers(n.ep, n.nic, barrier.Config{Table: b.tuned}, b.algos)
	if err != nil {
		return err
	}
	defer closeUnit()
	end, err := service.Group(barrier.GroupConfig{ID: uint32(len(b.algos)), PeerTimeout: b.peerTimeout})
	if err != nil {
		return err
	}
	m := &barrierNode{node: n, b: b, x: x, work: newSpinner(b.work), head: b.head(&n.form)}
	for _, r := range b.openMPI {
		if err := n.lines.Write(r, m.head, r.line()); err != nil {
			return err
		}
	}
	for i, name := range b.algos {
		n.lines.Say("%s ...", name)
		g, err := service.Group(barrier.GroupConfig{
			ID: uint32(i), Algorithm: b.cluster.Algorithm(name), PeerTimeout: b.peerTimeout,
		})
		if err != nil {
			return err
		}
		for _, loop := range barrierLoops {
			if err := m.measure(ctx, g, name, loop); err != nil {
				return err
			}
		}
		if err := g.Close(); err != nil {
			return err
		}
	}
	return errors.Join(end.Barrier(ctx), service.Close()) // the others answer until node 0 has all
}

// barrierNode is a node with what it needs to measure barriers.
type barrierNode struct {
	*node
	b    *barrierBench
	x    *cluster.Exchanger // gathers the samples
	work spinner
	head string
}

// measure measures one loop with one algorithm.
func (n *barrierNode) measure(ctx context.Context, g *barrier.Group, name, loop string) error {
	r := n.b.result(n.form, loop)
	r.Algo, r.Chosen, r.Frames = name, g.Algorithm().String(), g.Algorithm().Frames(g.Size())
	if name == auto && n.b.tuned != nil {
		r.choseBy(n.b.tuned, g.Shape(), g.Size())
	}
	if s := g.Shape(); s.Known() && n.b.cluster.NICs == 1 {
		r.ModelUS = cli.Micros(s.Cost(g.Algorithm())) // by which an empty config chooses
	} else {
		r.ModelUS = cli.Micros(g.Algorithm().Cost(g.Size(), n.b.cluster.Model()...))
	}
	work := n.work
	if loop == "tight" {
		work = 0
	}
	before := g.Stats().Nacks
	samples, allocs, err := measureBarriers(ctx, g, n.b.iters, work)
	if err != nil {
		return err
	}
	r.Allocs = allocs
	r.Nacks = g.Stats().Nacks - before
	own, err := binary.Append(nil, binary.BigEndian, samples)
	if err != nil {
		return err
	}
	parts, err := n.x.Gather(ctx, 0, own)
	if err != nil || n.ep.Node() != 0 {
		return err
	}
	all := make([][]uint32, len(parts))
	for k, b := range parts {
		all[k] = make([]uint32, n.b.iters)
		if used, err := binary.Decode(b, binary.BigEndian, all[k]); err != nil || used != len(b) {
			return fmt.Errorf("node %d has %d samples, and not %d (give all the same --iters)",
				n.ep.Nodes()[k].ID, len(b)/4, n.b.iters)
		}
	}
	r.fill(all)
	r.compare(n.b.openMPI)
	return n.lines.Write(r, n.head, r.line())
}

// warmUpOf returns how many barriers warm up.
func warmUpOf(iters int) int { return max(barrierWarmUp, iters/warmUpShare) }

// measureBarriers returns the time of each of a number of barriers, in ns, and what one of them
// allocates in this process.
func measureBarriers(
	ctx context.Context, g *barrier.Group, iters int, work spinner,
) (samples []uint32, allocs float64, err error) {
	samples = make([]uint32, 0, iters)
	warm := warmUpOf(iters)
	var since func() float64
	for i := range warm + iters {
		if i == warm {
			since = allocations()
		}
		start := time.Now()
		if err := g.Barrier(ctx); err != nil {
			return nil, 0, err
		}
		if took := time.Since(start); i >= warm {
			samples = append(samples, uint32(min(took, math.MaxUint32)))
		}
		work.spin()
	}
	return samples, since() / float64(iters), nil
}
