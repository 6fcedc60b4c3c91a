// Package bench is the verbs that measure: latency, bandwidth, message rate, LogP, barriers and
// remote memory.
package bench

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// NewCommand returns the verb bench.
func NewCommand() *cobra.Command {
	var verbs []*cobra.Command
	for _, b := range messageBenches {
		verbs = append(verbs, newMessageCommand(b))
	}
	verbs = append(verbs, newBarrierCommand())
	for _, b := range memoryBenches {
		verbs = append(verbs, newMemoryCommand(b))
	}
	for _, b := range programBenches {
		verbs = append(verbs, newProgramCommand(b))
	}
	verbs = append(verbs, newMPICommand(), newIdleCommand(), newJitterCommand())
	return cli.Group(&cobra.Command{
		Use:   "bench BENCHMARK",
		Short: "Measure latency, bandwidth, rate, LogP, barriers, memory, connections, calls, programs",
		Long: `Measures between nodes in memory (--link fabric), between processes in network namespaces of their
own (--link packet, ring, udp or xdp), between processes of one host through shared memory
(--link shm), or between machines: there, give --interface and, unless a host file says it, --node and
--nodes, and run the same command on each.`,
	}, "which benchmark?", verbs...)
}

// reportTime is for a node to report another one that was killed, once its silence is over.
const reportTime = 2 * time.Second

// bench is what every benchmark has.
type bench struct {
	name, short, long string
	sizes             []int // of what is sent; none for barriers
	iters             int
	cluster           launch.ClusterFlags
	alike             []string // the flags that all nodes are to give alike, if it is not node 0's that count
	formats           cli.Formats
	keyCost           *keyCost   // of those that show what a key costs
	printed           *cli.Lines // by the run before, without the key or with it
}

// part is what one node does in a benchmark.
type part func(context.Context, *node) error

// command returns the verb of a benchmark, with the flags that all have; the values that b has now
// are the defaults. prepare checks the flags that the others do not have, before any node starts.
func (b *bench) command(
	maxIters int, iters string, prepare func(*cobra.Command) error, part part,
) *cobra.Command {
	cmd := &cobra.Command{
		Use:   b.name + " [flags]",
		Short: b.short,
		Long:  b.long,
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.iters < 1 || b.iters > maxIters {
				return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxIters)
			}
			if err := b.formats.Validate(); err != nil {
				return err
			}
			if err := b.cluster.Validate(); err != nil {
				return err
			}
			if err := prepare(cmd); err != nil {
				return err
			}
			return b.run(cmd, part)
		},
	}
	b.cluster.Register(cmd)
	cmd.Flags().IntVar(&b.iters, "iters", b.iters, iters)
	b.formats.Register(cmd.Flags())
	return cmd
}

// run runs the part of each node. With a key file, a benchmark that shows what it costs runs
// without it and with it in turn, each time on endpoints of their own.
func (b *bench) run(cmd *cobra.Command, part part) error {
	if b.keyCost == nil || b.cluster.KeyFile == "" {
		b.keyCost = nil
		return b.runWith(cmd, &b.cluster, part)
	}
	b.keyCost = newKeyCost(b.iters)
	if b.cluster.Parent() { // each node does so
		return b.runWith(cmd, &b.cluster, part)
	}
	for k := b.keyCost; k.round < k.rounds; k.round++ {
		for _, nodes := range []*launch.ClusterFlags{b.cluster.Unkeyed(), &b.cluster} {
			if err := b.runWith(cmd, nodes, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) runWith(cmd *cobra.Command, nodes *launch.ClusterFlags, part part) error {
	protection, err := nodes.Protection()
	if err != nil {
		return err
	}
	return nodes.RunNodes(cmd, b.whatRuns(cmd), func(ctx context.Context, ep *mcd.Endpoint, nic string) error {
		n := b.newNode(cmd, ep, nic)
		n.form.Keys = protection
		defer n.lines.Clear()
		return part(ctx, n)
	})
}

// whatRuns is what the nodes of several machines are to run alike.
func (b *bench) whatRuns(cmd *cobra.Command) string {
	switch {
	case b.keyCost != nil:
		return answering + ", without a key and with it (--key-file)"
	case b.alike == nil: // those others answer whatever node 0 measures
		return answering
	}
	return launch.Alike(cmd, b.alike...)
}

// answering is what the nodes of plain messages' benchmarks run.
const answering = "rawlane bench latency, bandwidth, rate or logp"

// node is one node of a benchmark.
type node struct {
	ep    *mcd.Endpoint
	link  *passages // of bench latency --breakdown; else nil
	nic   string    // the name of its interface, if that is real
	form  result    // what all results have
	lines cli.Lines // what nodes other than 0 print is discarded
}

func (b *bench) newNode(cmd *cobra.Command, ep *mcd.Endpoint, nic string) *node {
	n := &node{ep: ep, nic: nic, form: b.result(ep, nic), lines: cli.Lines{Out: io.Discard}}
	if ep.Node() == 0 {
		n.lines = cli.Lines{
			Out: cmd.OutOrStdout(), JSON: b.formats.JSON, CSV: b.formats.CSV,
			Progress: cli.NewProgress(cmd.ErrOrStderr()),
		}
		if b.formats.CSV && b.printed != nil {
			n.lines.Continue(b.printed)
		}
		b.printed = &n.lines
	}
	return n
}
