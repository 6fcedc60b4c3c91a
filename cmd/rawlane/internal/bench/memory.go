package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/rpc"
)

// memoryBench measures remote memory between nodes 0 and 1.
type memoryBench struct {
	bench
	bytes   int64
	measure func(*memoryNode, context.Context, *memoryResult) error
	maxSize int
	time    string // headings of columns
	rate    string
	own     []column[memoryResult] // that others have not
}

var memoryBenches = []memoryBench{
	{
		bench: bench{
			name: "put", short: "Remote write",
			long: `Node 0 writes to node 1's memory, which sees it, and writes back: microseconds are half of that.
Then node 0 writes as much as --bytes, one Put after the other, until all is confirmed: MB/s; and
both write at the same time: duplex, each way.`,
			sizes: []int{4, 64, 1024, 16384, 65536, 1 << 20},
		},
		measure: (*memoryNode).put, maxSize: maxMemory, time: "one way (us)", rate: "puts/s",
		own: []column[memoryResult]{{"duplex MB/s", 2, func(r *memoryResult) float64 { return r.DuplexMBPerS }}},
	},
	{
		bench: bench{
			name: "get", short: "Remote read",
			long:  `Node 0 reads node 1's memory: microseconds are from the question until all is there.`,
			sizes: []int{4, 64, 1024, 16384, 65536, 1 << 20},
		},
		measure: (*memoryNode).get, maxSize: maxMemory, time: "call (us)", rate: "gets/s",
	},
	{
		bench: bench{
			name: "fifo", short: "Records through a FIFO",
			long: `Node 0 pushes a record to node 1, which pops it and pushes it back: microseconds are half of that.
Then node 0 pushes as many as --bytes allows: one call each (records/s), and in batches of 64
(batched).`,
			sizes: []int{8, 64, 1024, 16384},
		},
		measure: (*memoryNode).fifo, maxSize: memfifo.MaxRecord, time: "one way (us)", rate: "records/s",
		own: []column[memoryResult]{{"batched/s", 0, func(r *memoryResult) float64 { return r.BatchedPerS }}},
	},
	{
		bench: bench{
			name: "amo", short: "Atomic operations on remote memory",
			long: `Node 0 adds to a word of node 1's memory: microseconds are from the call until the
answer.`,
			sizes: []int{8},
		},
		measure: (*memoryNode).amo, time: "call (us)", rate: "adds/s",
	},
	{
		bench: bench{
			name: "conn", short: "Connections: package rawnet beside net's TCP",
			long: `Node 0 writes to a connection, node 1 reads it and writes it back: microseconds are half of that.
Beside it are those of a Push through a FIFO, on which connections are built, and, where the nodes'
interfaces have IPv4 addresses, those of the same program over package net's TCP. Then node 0
writes as much as --bytes, until node 1 has read it: MB/s.`,
			sizes: []int{64, 1024, 16384},
		},
		measure: (*memoryNode).conn, maxSize: memfifo.MaxRecord, time: "one way (us)", rate: "writes/s",
		own: []column[memoryResult]{
			pushColumn, {"tcp (us)", 2, func(r *memoryResult) float64 { return cmp.Or(r.TCPUS, math.NaN()) }},
		},
	},
	{
		bench: bench{
			name: "rpc", short: "Calls: package rpc",
			long: `Node 0 calls node 1, which sends back what it gets: microseconds are from the call until the
response, of a handler in a goroutine. Beside it are those of a call whose handler runs inline, and
half the round trip of a Push through a FIFO, on which calls are built.`,
			sizes: []int{64, 1024, 16384},
		},
		measure: (*memoryNode).call, maxSize: rpc.MaxMessage - rpc.MaxService,
		time: "call (us)", rate: "calls/s",
		own: []column[memoryResult]{
			pushColumn, {"inline (us)", 2, func(r *memoryResult) float64 { return r.InlineUS }},
		},
	},
}

var pushColumn = column[memoryResult]{"push (us)", 2, func(r *memoryResult) float64 { return r.PushUS }}

const (
	// maxMemory bounds --size.
	maxMemory = 1 << 30
	// maxMemoryBytes bounds --bytes.
	maxMemoryBytes = 1 << 40
	// maxMemoryIters bounds --iters.
	maxMemoryIters = 1_000_000
)

func newMemoryCommand(b memoryBench) *cobra.Command {
	b.iters = 5000
	b.long += `

What has arrived is compared with what was sent; again is how many frames node 0 has sent anew. Other
nodes than 0 and 1 are idle.

  rawlane bench ` + b.name + ` --link ring
  rawlane bench ` + b.name + ` --link ring --loss 0.01 --seed 7`
	cmd := b.command(maxMemoryIters, "round trips per size, fewer of large ones: no more than --bytes in all",
		b.prepare, b.part)
	b.cluster.ModeFlag(cmd)
	b.cluster.FaultFlags(cmd)
	f := cmd.Flags()
	if b.maxSize > 0 {
		cli.SizesFlag(f, &b.sizes, "size", "", "sizes")
		b.alike = []string{"size"}
	}
	b.bytes, b.alike = 64<<20, append(b.alike, "iters", "bytes")
	cli.SizeFlag(f, &b.bytes, "bytes",
		"bytes to send per size, for the rates, but no more than 2,000,000 messages: 1000000, 64M")
	return cmd
}

func (b *memoryBench) prepare(*cobra.Command) error {
	if b.bytes < 1 || b.bytes > maxMemoryBytes {
		return cli.Misuse("--bytes %d: want 1 to %d", b.bytes, int64(maxMemoryBytes))
	}
	for _, s := range b.sizes {
		if b.maxSize > 0 && (s < 1 || s > b.maxSize) {
			return cli.Misuse("--size %d: want 1 to %d", s, b.maxSize)
		}
	}
	b.cluster.Grace = launch.AskTimeout + reportTime
	return nil
}

// part measures all sizes. Each begins and ends on all nodes together.
func (b *memoryBench) part(ctx context.Context, n *node) error {
	m := &memoryNode{node: n, b: b}
	barriers, err := barrier.Open(n.ep, barrier.Config{})
	if err != nil {
		return err
	}
	group, err := barriers.Group(barrier.GroupConfig{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	if err := m.open(ctx); err != nil {
		return err
	}
	for _, size := range b.sizes {
		n.lines.Say("%s, %d bytes ...", b.name, size)
		r := &memoryResult{result: n.form, Mode: b.cluster.Mode, Faults: b.cluster.Faults}
		r.SizeBytes = size
		before := m.d.Counters()
		if n.ep.Node() <= 1 {
			m.fill(size)
			if err := b.measure(m, ctx, r); err != nil {
				return err
			}
		}
		if err := group.Barrier(ctx); err != nil {
			return err
		}
		after := m.d.Counters()
		r.Frames += after.Sent - before.Sent
		r.Again += after.Retransmitted - before.Retransmitted
		if err := n.lines.Write(r, b.head(r), b.line(r)); err != nil {
			return err
		}
	}
	return errors.Join(m.d.Flush(ctx), group.Barrier(ctx), m.x.Close(), m.d.Close(), group.Close())
}

// memoryResult is one line of these benchmarks.
type memoryResult struct {
	result
	Streamed     int     `json:"streamed,omitempty"`  // put, fifo, conn: the messages that msgs_per_s is of
	DuplexMBPerS float64 `json:"duplex_mb_per_s"`     // put: each way, both at once
	BatchedPerS  float64 `json:"batched_msgs_per_s"`  // fifo: records pushed 64 at once
	PushUS       float64 `json:"push_us,omitempty"`   // conn, rpc, mpi: of a Push through a FIFO, one way
	TCPUS        float64 `json:"tcp_us,omitempty"`    // conn: over package net's TCP, one way
	InlineUS     float64 `json:"inline_us,omitempty"` // rpc: of a call with an inline handler
	Frames       uint64  `json:"frames"`              // that node 0 has sent
	Again        uint64  `json:"sent_again"`          // of these, again
	Mode         string  `json:"mode"`
	Lost         *absent `json:"lost,omitempty"`
	Allocs       *absent `json:"allocs_per_op,omitempty"`
	launch.Faults
}

func (b *memoryBench) head(r *memoryResult) string {
	faulty := r.Faults.String()
	if faulty != "" {
		faulty = ", " + faulty
	}
	return fmt.Sprintf("# rawlane bench %s: %s, %d nodes%s, %s, %s, %v%s\n# Size %18s %10s %10s %10s %12s %12s%s %7s\n",
		r.Bench, r.Link, r.Nodes, r.protection(), r.Mode, r.pinned(), r.Host, faulty,
		b.time+" p50", "p99", "min", "max", "MB/s", b.rate, columns(b.own, 12, nil), "again")
}

func (b *memoryBench) line(r *memoryResult) string {
	return fmt.Sprintf("%-10d %14.2f %10.2f %10.2f %10.2f %12.2f %12.0f%s %7d\n",
		r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.MBPerS, r.MsgsPerS, columns(b.own, 12, r), r.Again)
}
