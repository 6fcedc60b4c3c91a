package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mpi"
)

// mpiBench measures package mpi, with the loops and the columns of the OSU benchmarks.
type mpiBench struct {
	bench
	measure func(*mpiNode, context.Context, *mpiResult) error
	ranks   int // that take part, if not all
	unit    int // of sizes
	least   int // size
	columns []column[mpiResult]

	algorithm string // where there is a choice
}

var (
	pingColumns = []column[mpiResult]{
		{"Latency (us)", 2, func(r *mpiResult) float64 { return r.MeanUS }},
		{"p50", 2, func(r *mpiResult) float64 { return r.P50US }},
		{"p99", 2, func(r *mpiResult) float64 { return r.P99US }},
		{"min", 2, func(r *mpiResult) float64 { return r.MinUS }},
		{"max", 2, func(r *mpiResult) float64 { return r.MaxUS }},
	}
	streamColumns = []column[mpiResult]{
		{"Bandwidth (MB/s)", 2, func(r *mpiResult) float64 { return r.MBPerS }},
		{"Messages/s", 0, func(r *mpiResult) float64 { return r.MsgsPerS }},
	}
	collectiveColumns = []column[mpiResult]{
		{"Avg Latency (us)", 2, func(r *mpiResult) float64 { return r.MeanUS }},
		{"Min Latency (us)", 2, func(r *mpiResult) float64 { return r.MinUS }},
		{"Max Latency (us)", 2, func(r *mpiResult) float64 { return r.MaxUS }},
		{"Iterations", 0, func(r *mpiResult) float64 { return float64(r.Iters) }},
	}
)

const (
	ofAllRanks = `Microseconds are of one call:
of each rank the mean, and of these the mean, the least and the greatest.`
	pairRanks = 2
)

// mpiSizes are those of the OSU benchmarks.
var mpiSizes = []int{4, 64, 1024, 16384, 262144, 1 << 20}

var mpiBenches = []mpiBench{
	{
		bench: bench{name: "latency", short: "Half round trips between ranks 0 and 1",
			long: "Rank 0 sends a message to rank 1, which sends one back: microseconds are half of that."},
		measure: (*mpiNode).latency, ranks: pairRanks, unit: 1, columns: pingColumns,
	},
	{
		bench: bench{name: "bandwidth", short: "Messages one way, 64 at a time",
			long: `Rank 0 sends 64 messages at once to rank 1, which answers when it has all of them, again and
again.`},
		measure: (*mpiNode).bandwidth, ranks: pairRanks, unit: 1, least: 1, columns: streamColumns,
	},
	{
		bench: bench{name: "bibw", short: "Messages both ways, 64 at a time",
			long: `Ranks 0 and 1 send 64 messages at once to each other, again and again: bandwidth is that of
both.`},
		measure: (*mpiNode).bothWays, ranks: pairRanks, unit: 1, least: 1, columns: streamColumns,
	},
	{
		bench: bench{name: "put", short: "Puts into rank 1's window",
			long: "Rank 0 writes to rank 1's window: microseconds are of a Put and the Flush behind it."},
		measure: (*mpiNode).put, ranks: pairRanks, unit: 1, least: 1, columns: pingColumns,
	},
	{
		bench: bench{name: "allreduce", short: "Sums of all ranks' elements",
			long: "The sum of what all ranks have, at all of them: 32-bit floating-point numbers. " + ofAllRanks},
		measure: (*mpiNode).allreduce, unit: 4, least: 4, columns: collectiveColumns,
	},
	{
		bench: bench{name: "allgather", short: "From each rank to all",
			long: "All ranks get what each one has. " + ofAllRanks},
		measure: (*mpiNode).allgather, unit: 1, least: 1, columns: collectiveColumns,
	},
	{
		bench: bench{name: "alltoall", short: "From each rank to each",
			long: "Each rank has as many bytes for each other one. " + ofAllRanks},
		measure: (*mpiNode).alltoall, unit: 1, least: 1, columns: collectiveColumns,
	},
	{
		bench: bench{name: "bcast", short: "From rank 0 to all",
			long: "Rank 0 gives its bytes to all. " + ofAllRanks},
		measure: (*mpiNode).bcast, unit: 1, least: 1, columns: collectiveColumns,
	},
	{
		bench: bench{name: "barrier", short: "Barriers of all ranks",
			long: "All ranks wait for each other. " + ofAllRanks},
		measure: (*mpiNode).barrier, columns: collectiveColumns,
	},
}

// maxMPIIters bounds --iters.
const maxMPIIters = 1_000_000

func newMPICommand() *cobra.Command {
	var verbs []*cobra.Command
	for _, b := range mpiBenches {
		verbs = append(verbs, b.newCommand())
	}
	return cli.Group(&cobra.Command{
		Use:   "mpi BENCHMARK",
		Short: "Message passing: package mpi, in the manner of the OSU benchmarks",
		Long: `Measures messages and collective operations of package mpi, with the loops and the columns of the OSU
benchmarks. What has arrived is compared with what was sent. "again" is how many frames rank 0 has
sent anew.`,
	}, "which benchmark?", verbs...)
}

func (b mpiBench) newCommand() *cobra.Command {
	b.iters = 10000
	if b.unit > 0 {
		b.sizes = mpiSizes
	}
	b.long += "\n\n  rawlane bench mpi " + b.name + " --link ring"
	if b.ranks == 0 {
		b.long += " --nodes 8"
		b.iters = 1000
	}
	cmd := b.command(maxMPIIters, "iterations per size; of more than 8 KiB, a tenth", b.prepare, b.part)
	b.cluster.ModeFlag(cmd)
	b.cluster.FaultFlags(cmd)
	b.alike = []string{"iters"}
	if b.unit > 0 {
		cli.SizesFlag(cmd.Flags(), &b.sizes, "size", "m", "sizes of messages, in bytes")
		b.alike = append(b.alike, "size")
	}
	if names := b.algorithms(); len(names) > 0 {
		cmd.Flags().StringVar(&b.algorithm, "algorithm", "",
			strings.Join(names, " or ")+", for all sizes (default: as mpi.Algorithms says)")
		cli.Choice(cmd, "algorithm", names...)
		b.alike = append(b.alike, "algorithm")
	}
	return cmd
}

// algorithms are those of the operation, where there is a choice.
func (b *mpiBench) algorithms() (names []string) {
	for _, a := range mpi.Algorithms() {
		if a.Operation == b.name && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

func (b *mpiBench) prepare(*cobra.Command) error {
	for _, s := range b.sizes {
		if s < b.least || s > maxMemory || s%b.unit != 0 {
			return cli.Misuse("--size %d: want %d to %d, a multiple of %d", s, b.least, maxMemory, b.unit)
		}
	}
	if b.algorithm != "" && !slices.Contains(b.algorithms(), b.algorithm) {
		return cli.Misuse("--algorithm %q: want %s", b.algorithm, strings.Join(b.algorithms(), " or "))
	}
	b.cluster.Grace = launch.AskTimeout + reportTime
	return nil
}

// part measures all sizes. Each begins and ends on all ranks together.
func (b *mpiBench) part(ctx context.Context, n *node) (err error) {
	cfg := mpi.Config{PeerTimeout: launch.AskTimeout}
	if b.algorithm != "" {
		cfg.Algorithms = []mpi.Algorithm{{Operation: b.name, Name: b.algorithm}}
	}
	w, err := mpi.Open(n.ep, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil { // else the others are ended: a goodbye would have them fail before they know why
			err = w.Close()
		}
	}()
	sizes := b.sizes
	if len(sizes) == 0 {
		sizes = []int{0}
	}
	all := w.Comm()
	m := &mpiNode{node: n, c: all}
	if b.ranks > 0 {
		color := 0
		if all.Rank() >= b.ranks {
			color = mpi.NoColor
		}
		if m.c, err = all.Split(ctx, color, 0); err != nil {
			return err
		}
	}
	for _, size := range sizes {
		n.lines.Say("%s, %d bytes ...", b.name, size)
		r := b.newResult(n, size)
		before := w.Counters().Frames
		if err := all.Barrier(ctx); err != nil {
			return err
		}
		if m.c != nil {
			if err := b.measure(m, ctx, r); err != nil {
				return err
			}
		}
		if err := all.Barrier(ctx); err != nil {
			return err
		}
		after := w.Counters().Frames
		r.Frames, r.Again = after.Sent-before.Sent, after.Retransmitted-before.Retransmitted
		if err := n.lines.Write(r, b.head(r), b.line(r)); err != nil {
			return err
		}
	}
	return nil
}

// mpiResult is one line of these benchmarks.
type mpiResult struct {
	result
	Frames uint64  `json:"frames"`     // that rank 0 has sent
	Again  uint64  `json:"sent_again"` // of these, again
	Mode   string  `json:"mode"`
	Lost   *absent `json:"lost,omitempty"`
	Allocs *absent `json:"allocs_per_op,omitempty"`
	launch.Faults
}

// largeMessage is the size from which on iterations are fewer, as in the OSU benchmarks.
const largeMessage = 8192

func (b *mpiBench) newResult(n *node, size int) *mpiResult {
	r := &mpiResult{result: n.form, Mode: b.cluster.Mode, Faults: b.cluster.Faults}
	r.Bench, r.SizeBytes, r.Algo = "mpi "+b.name, size, b.algorithm
	if size > largeMessage {
		r.Iters = max(1, r.Iters/10)
	}
	return r
}

func (b *mpiBench) head(r *mpiResult) string {
	faulty := r.Faults.String()
	if faulty != "" {
		faulty = ", " + faulty
	}
	return fmt.Sprintf("# rawlane bench %s: %s, %d nodes%s, %s, %s, %v%s\n# %-8s%s %7s\n",
		r.Bench, r.Link, r.Nodes, r.protection(), r.Mode, r.pinned(), r.Host, faulty, "Size",
		columns(b.columns, 17, nil), "again")
}

func (b *mpiBench) line(r *mpiResult) string {
	return fmt.Sprintf("%-10d%s %7d\n", r.SizeBytes, columns(b.columns, 17, r), r.Again)
}
