// Package bench is the verbs that measure: latency, bandwidth, message rate, LogP, barriers and
// remote memory.
package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// benchKind is a benchmark of plain messages.
type benchKind struct {
	name, short, long string
	sizes             []int
	iters             int
	window, batch     int
	measure           func(*client, context.Context, *benchResult) error
}

var benchKinds = []benchKind{
	{
		name:  "latency",
		short: "Half of a message's round trip",
		long: `Node 0 sends a message and awaits its echo, with each of the other nodes in turn. The numbers are
half of the time from before the send until after the receive, in microseconds.`,
		sizes: []int{4, 64, 1024, 1400}, iters: 20_000, batch: 1,
		measure: (*client).latency,
	},
	{
		name:  "bandwidth",
		short: "Bytes a second, in windows",
		long: `Node 0 posts a window of messages to node 1, which answers once it has received them. The numbers
are of messages that arrived; microseconds are a window's time divided by its messages.`,
		sizes: []int{64, 256, 1024, 1400}, iters: 200_000, window: 64, batch: rateBatch,
		measure: (*client).bandwidth,
	},
	{
		name:  "rate",
		short: "Messages a second, without pause",
		long: `Node 0 posts messages to node 1 in batches as quickly as the link takes them. What the receiver had
no room for is lost, and shown.`,
		sizes: []int{64, 1400}, iters: 1_000_000, batch: rateBatch,
		measure: (*client).rate,
	},
	{
		name:  "logp",
		short: "What a message costs its sender, its receiver and the link",
		long:  logpLong,
		sizes: []int{4, 64}, iters: 20_000, batch: 1,
		measure: (*client).logp,
	},
}

const (
	// maxIters keeps a run's end in sight: half an hour of the quickest.
	maxIters = 1_000_000_000
	// maxWindow is what a receiver's ring holds at its default size.
	maxWindow = 1024
)

// NewCommand returns the verb bench.
func NewCommand() *cobra.Command {
	var verbs []*cobra.Command
	for _, k := range benchKinds {
		verbs = append(verbs, newKindCommand(k))
	}
	verbs = append(verbs, newBarrierCommand())
	for _, k := range memoryKinds {
		verbs = append(verbs, newMemoryCommand(k))
	}
	return cli.Group(&cobra.Command{
		Use:   "bench BENCHMARK",
		Short: "Measure latency, bandwidth, message rate, LogP, barriers, remote memory",
		Long: `Measures between nodes in memory (--link fabric), between processes in network namespaces of their
own (--link packet or ring), or between machines: there, give --interface and, unless a host file
says it, --node and --nodes, and run the same command on each.`,
	}, "which benchmark?", verbs...)
}

// bench measures plain messages.
type bench struct {
	benchKind
	cluster launch.ClusterFlags
	json    bool
	others  []string // networks of package net
}

func newKindCommand(k benchKind) *cobra.Command {
	b := &bench{benchKind: k}
	cmd := &cobra.Command{
		Use:   k.name + " [flags]",
		Short: k.short,
		Long:  k.long,
		Args:  cli.NoArguments,
		RunE:  b.run,
	}
	b.cluster.Register(cmd)
	f := cmd.Flags()
	cli.SizesFlag(f, &b.sizes, "size", "payload sizes")
	f.IntVar(&b.iters, "iters", k.iters, "messages per size, not counting those that warm up")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	if k.name == "latency" {
		cli.ListFlag(f, &b.others, "beside", "udp,tcp",
			"measure these of package net as well, between the same interfaces", parseNetwork)
	}
	if k.window > 0 {
		f.IntVar(&b.window, "window", k.window, "messages sent before an answer is awaited")
	}
	return cmd
}

func (b *bench) validate() error {
	if b.iters < 1 || b.iters > maxIters {
		return cli.Misuse("--iters %d: want 1 to %d", b.iters, maxIters)
	}
	if b.name == "bandwidth" && (b.window < 1 || b.window > maxWindow) {
		return cli.Misuse("--window %d: want 1 to %d", b.window, maxWindow)
	}
	if err := b.cluster.Validate(); err != nil {
		return err
	}
	if len(b.others) > 0 && b.cluster.Kind == "fabric" {
		return cli.Misuse("--beside: there is no IP on the fabric; give --link packet or ring, or --interface")
	}
	return nil
}

func (b *bench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	ctx := cmd.Context()
	switch {
	case b.cluster.Here():
		return b.runHere(ctx, cmd)
	case b.cluster.Kind == "fabric":
		return b.runInMemory(ctx, cmd)
	}
	return b.cluster.RunProcesses(ctx, cmd)
}

// runInMemory runs all nodes in this process, on a fabric.
func (b *bench) runInMemory(ctx context.Context, cmd *cobra.Command) error {
	nodes, closeAll, err := b.cluster.InMemory()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	var servers sync.WaitGroup
	for k, e := range nodes[1:] {
		servers.Go(func() {
			if err := serveBench(ctx, e, ""); err != nil {
				stop(fmt.Errorf("node %d: %w", k+1, err))
			}
		})
	}
	err = b.measureAll(ctx, nodes[0], launch.ThisHost("", nodes[0].MaxPayload()+mcd.HeaderLen), cmd)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	stop(nil)
	servers.Wait()
	return errors.Join(err, closeAll())
}

// runHere is one node of several, each on a machine or in a namespace of its own.
func (b *bench) runHere(ctx context.Context, cmd *cobra.Command) error {
	m, err := b.cluster.Join(ctx)
	if err != nil {
		return err
	}
	if m.Endpoint.Node() == 0 {
		err = b.measureAll(ctx, m.Endpoint, launch.ThisHost(m.NIC, m.Endpoint.MaxPayload()+mcd.HeaderLen), cmd)
	} else {
		err = serveBench(ctx, m.Endpoint, m.NIC)
	}
	return errors.Join(err, m.Close())
}

// measureAll is node 0's part: all sizes, one after the other.
func (b *bench) measureAll(ctx context.Context, e *mcd.Endpoint, h launch.Host, cmd *cobra.Command) (err error) {
	for _, size := range b.sizes {
		if size > e.MaxPayload() {
			return fmt.Errorf("--size %d: %w", size, &transport.SizeError{Size: size, Max: e.MaxPayload()})
		}
	}
	note := cli.NewProgress(cmd.ErrOrStderr())
	note.Say("waiting for the other nodes ...")
	c, err := openClient(ctx, e)
	if err != nil {
		return err
	}
	table := benchTable{Lines: cli.Lines{Out: cmd.OutOrStdout(), JSON: b.json}}
	one := func(size int, by string, measure func(*benchResult) error) error {
		p := parametersOf(&b.cluster, e)
		p.Iters, p.Window, p.Batch = b.iters, b.window, b.batch
		r := newResult(b.name, p, h)
		r.SizeBytes = size
		note.Say("%s, %d bytes%s ...", b.name, size, by)
		err := measure(&r)
		note.Clear()
		if err == nil {
			err = table.write(&r)
		}
		return err
	}
	for _, size := range b.sizes {
		if err := one(size, "", func(r *benchResult) error { return b.measure(c, ctx, r) }); err != nil {
			return err
		}
	}
	for _, network := range b.others {
		for _, size := range b.sizes {
			err := one(size, " by "+network, func(r *benchResult) error {
				r.Link, r.Tagged, r.VID, r.PCP, r.Routed = network, false, 0, 0, false
				return c.beside(ctx, network, r)
			})
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(c.end(ctx), table.finish())
}
