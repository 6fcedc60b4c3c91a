package bench

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// memoryBench measures remote memory between nodes 0 and 1.
type memoryBench struct {
	memoryKind
	cluster launch.ClusterFlags
	sizes   []int
	iters   int
	bytes   int64
	json    bool
}

type memoryKind struct {
	name, short, long string
	sizes             []int
	measure           func(*memoryNode, context.Context, int, *memoryResult) error
}

var memoryKinds = []memoryKind{
	{
		name: "put", short: "Remote write",
		long: `Node 0 writes to node 1's memory, which sees it, and writes back: microseconds are half of that.
Then node 0 writes as much as --bytes, one Put after the other, until all is confirmed: MB/s; and
both write at the same time: duplex, each way.`,
		sizes: []int{4, 64, 1024, 16384, 65536, 1 << 20}, measure: (*memoryNode).put,
	},
	{
		name: "get", short: "Remote read",
		long:  `Node 0 reads node 1's memory: microseconds are from the question until all is there.`,
		sizes: []int{4, 64, 1024, 16384, 65536, 1 << 20}, measure: (*memoryNode).get,
	},
	{
		name: "fifo", short: "Records through a FIFO",
		long: `Node 0 pushes a record to node 1, which pops it and pushes it back: microseconds are half of that.
Then node 0 pushes as many as --bytes allows: one call each (records/s), and in batches of 64
(batched).`,
		sizes: []int{8, 64, 1024, 16384}, measure: (*memoryNode).fifo,
	},
	{
		name: "amo", short: "Atomic operations on remote memory",
		long: `Node 0 adds to a word of node 1's memory: microseconds are from the call until the
answer.`,
		sizes: []int{8}, measure: (*memoryNode).amo,
	},
}

const (
	// maxMemory bounds --size and --bytes.
	maxMemory = 1 << 30
	// maxMemoryIters bounds --iters.
	maxMemoryIters = 1_000_000
	// memoryBatch is the number of records in a batch.
	memoryBatch = 64
	// benchFIFO is the memory of a FIFO: several of the longest records.
	benchFIFO = 1 << 20
)

func newMemoryCommand(k memoryKind) *cobra.Command {
	b := &memoryBench{memoryKind: k, sizes: k.sizes}
	cmd := &cobra.Command{
		Use:   k.name + " [flags]",
		Short: k.short,
		Long: k.long + `

What has arrived is compared with what was sent; again is how many frames node 0 has sent anew. Other
nodes than 0 and 1 are idle.`,
		Args: cli.NoArguments,
		RunE: b.run,
	}
	b.cluster.Register(cmd)
	b.cluster.ModeFlag(cmd)
	b.cluster.FaultFlags(cmd)
	f := cmd.Flags()
	if k.name != "amo" {
		cli.SizesFlag(f, &b.sizes, "size", "sizes")
	}
	f.IntVar(&b.iters, "iters", 5000, "round trips per size, fewer of large ones: no more than --bytes in all")
	f.Int64Var(&b.bytes, "bytes", 64<<20, "bytes to send per size, for the rates")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	return cmd
}

func (b *memoryBench) validate() error {
	if b.iters < 1 || b.iters > maxMemoryIters {
		return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxMemoryIters)
	}
	if b.bytes < 1 || b.bytes > 1<<40 {
		return cli.Misuse("--bytes %d: want 1 to %d", b.bytes, int64(1<<40))
	}
	most := maxMemory
	if b.name == "fifo" {
		most = memfifo.MaxRecord
	}
	for _, s := range b.sizes {
		if s < 1 || s > most {
			return cli.Misuse("--size %d: want 1 to %d", s, most)
		}
	}
	return b.cluster.Validate()
}

func (b *memoryBench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	b.cluster.Grace = 2 * memfifo.DefaultPeerTimeout
	return b.cluster.RunNodes(cmd, func(ctx context.Context, ep *mcd.Endpoint, nic string) error {
		return b.node(ctx, ep, launch.ThisHost(nic, ep.MaxPayload()+mcd.HeaderLen), cmd)
	})
}
