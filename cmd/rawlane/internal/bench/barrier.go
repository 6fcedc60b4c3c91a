package bench

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// barrierBench measures barriers.
type barrierBench struct {
	cluster     launch.ClusterFlags
	algos       []string
	iters       int
	work        time.Duration
	peerTimeout time.Duration
	json        bool
	mpi         bool

	openMPI []*barrierResult // with --compare-mpi
}

// barrierWork is the work between two barriers in the paper's benchmark.
const barrierWork = 30 * time.Microsecond

func newBarrierCommand() *cobra.Command {
	b := &barrierBench{algos: []string{"auto"}}
	cmd := &cobra.Command{
		Use:   "barrier [flags]",
		Short: "One barrier among all nodes",
		Long: `Measures barriers in two loops: with some work between one and the next, as in the paper, and
without. Each node takes the time of each of its barriers; the numbers are averages over the nodes,
not those of one.

    Barrier    the mean, averaged over the nodes, in microseconds; so are min and max
    fastest    the mean of the node that waits least, and slowest of the one that waits longest
    network    the shortest wait of each barrier: that of the last one to come, which waits for messages alone
    skew       how much longer the first one to come waits
    model      what the LogP model predicts
    / MPI      the mean divided by Open MPI's of the same loop: with --compare-mpi

Algorithms: ` + schedule.Names + `.`,
		Args: cli.NoArguments,
		RunE: b.run,
	}
	b.cluster.Register(cmd)
	b.cluster.NICsFlag(cmd)
	b.cluster.ModeFlag(cmd)
	f := cmd.Flags()
	cli.AlgorithmsFlag(f, &b.algos, "algo", "algorithms, separated by commas")
	f.IntVar(&b.iters, "iters", 1000, "barriers in each loop, not counting those that warm up")
	f.DurationVar(&b.work, "work", barrierWork, "work between two barriers, in the first loop")
	f.DurationVar(&b.peerTimeout, "peer-timeout", barrier.DefaultPeerTimeout,
		"how long a node may be silent before it counts as down")
	f.BoolVar(&b.mpi, "compare-mpi", false, "measure Open MPI's barrier as well, over TCP on this machine")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	return cmd
}

func (b *barrierBench) validate() error {
	if b.iters < 1 || b.iters > maxBarriers {
		return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxBarriers)
	}
	if b.work < 0 || b.peerTimeout <= 0 {
		return cli.Misuse("--work %v --peer-timeout %v: want 0 or more, and more than 0", b.work, b.peerTimeout)
	}
	if err := b.cluster.Validate(); err != nil {
		return err
	}
	if b.mpi && b.cluster.Here() && os.Getenv(cli.EnvLocal) == "" {
		return cli.Misuse("--compare-mpi is for nodes on this machine")
	}
	return nil
}

// maxBarriers bounds --iters: each node keeps the time of each barrier.
const maxBarriers = 1_000_000

func (b *barrierBench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	if b.mpi {
		if err := b.compareMPI(cmd.Context(), cmd); err != nil {
			return err
		}
	}
	b.cluster.Grace = b.peerTimeout + 2*time.Second // to report a node that was killed
	return b.cluster.RunNodes(cmd, func(ctx context.Context, ep *mcd.Endpoint, nic string) error {
		r := &barrierRun{bench: b, ep: ep, host: launch.ThisHost(nic, ep.MaxPayload()+mcd.HeaderLen), cmd: cmd}
		return r.all(ctx)
	})
}
