package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// benchKind is one of the benchmarks.
type benchKind struct {
	name, short, long string
	sizes             sizes
	iters             int
	window, batch     int
	measure           func(*gauge, context.Context, *benchResult) error
}

var benchKinds = []benchKind{
	{
		name:  "latency",
		short: "Half of a message's round trip",
		long: `Node 0 sends a message and awaits its echo, with each of the other nodes in turn. The numbers are half
of the time from before the send until after the receive, in microseconds.`,
		sizes: sizes{4, 64, 1024, 1400}, iters: 20_000, batch: 1,
		measure: (*gauge).latency,
	},
	{
		name:  "bandwidth",
		short: "Bytes a second, in windows",
		long: `Node 0 posts a window of messages to node 1, which answers once it has received them. The numbers are of
messages that arrived; microseconds are a window's time divided by its messages.`,
		sizes: sizes{64, 256, 1024, 1400}, iters: 200_000, window: 64, batch: rateBatch,
		measure: (*gauge).bandwidth,
	},
	{
		name:  "rate",
		short: "Messages a second, without pause",
		long: `Node 0 posts messages to node 1 in batches as quickly as the link takes them. What the receiver had no
room for is lost, and shown.`,
		sizes: sizes{64, 1400}, iters: 1_000_000, batch: rateBatch,
		measure: (*gauge).rate,
	},
	{
		name:  "logp",
		short: "What a message costs its sender, its receiver and the link",
		long:  logpLong,
		sizes: sizes{4, 64}, iters: 20_000, batch: 1,
		measure: (*gauge).logp,
	},
}

const (
	// maxIters keeps a run's end in sight: half an hour of the quickest.
	maxIters = 1_000_000_000
	// maxWindow is what a receiver's ring holds at its default size.
	maxWindow = 1024
)

func newBenchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench BENCHMARK",
		Short: "Measure latency, bandwidth, message rate, LogP, barriers, remote memory",
		Long: `Measures between nodes in memory (--link fabric), between processes in network namespaces of their own
(--link packet or ring), or between machines: there, give --interface and, unless a host file says it, --node and
--nodes, and run the same command on each.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			return misuse("which benchmark? (latency, bandwidth, rate, logp, barrier, put, get, fifo or amo)")
		},
	}
	for _, k := range benchKinds {
		cmd.AddCommand(newBenchKindCommand(k))
	}
	cmd.AddCommand(newBenchBarrierCommand())
	for _, k := range memoryKinds {
		cmd.AddCommand(newBenchMemoryCommand(k))
	}
	return cmd
}

// bench is one run of a benchmark.
type bench struct {
	benchKind
	place  place
	json   bool
	others networks
}

func newBenchKindCommand(k benchKind) *cobra.Command {
	b := &bench{benchKind: k}
	cmd := &cobra.Command{
		Use:   k.name + " [flags]",
		Short: k.short,
		Long:  k.long,
		Args:  noArguments,
		RunE:  b.run,
	}
	b.place.flags(cmd)
	f := cmd.Flags()
	f.Var(&b.sizes, "size", "payload sizes")
	f.IntVar(&b.iters, "iters", k.iters, "messages per size, not counting those that warm up")
	f.BoolVar(&b.json, "json", false, "print one JSON object per line")
	if k.name == "latency" {
		f.Var(&b.others, "beside", "measure these of package net as well, between the same interfaces")
	}
	if k.window > 0 {
		f.IntVar(&b.window, "window", k.window, "messages sent before an answer is awaited")
	}
	return cmd
}

func (b *bench) validate() error {
	if b.iters < 1 || b.iters > maxIters {
		return misuse("--iters %d: want 1 to %d", b.iters, maxIters)
	}
	if b.name == "bandwidth" && (b.window < 1 || b.window > maxWindow) {
		return misuse("--window %d: want 1 to %d", b.window, maxWindow)
	}
	if err := b.place.validate(); err != nil {
		return err
	}
	if len(b.others) > 0 && b.place.kind == "fabric" {
		return misuse("--beside: there is no IP on the fabric; give --link packet or ring, or --interface")
	}
	return nil
}

func (b *bench) run(cmd *cobra.Command, _ []string) error {
	if err := b.validate(); err != nil {
		return err
	}
	ctx := cmd.Context()
	switch {
	case b.place.here():
		return b.runHere(ctx, cmd)
	case b.place.kind == "fabric":
		return b.runInMemory(ctx, cmd)
	}
	return b.place.inNamespaces(ctx, cmd)
}

// runInMemory runs all nodes in this process, on a fabric.
func (b *bench) runInMemory(ctx context.Context, cmd *cobra.Command) error {
	nodes, closeAll, err := b.place.inMemory()
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
	err = b.measureAll(ctx, nodes[0], thisHost("", nodes[0].MaxPayload()+mcd.HeaderLen), cmd)
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	stop(nil)
	servers.Wait()
	return errors.Join(err, closeAll())
}

// runHere is one node of several, each on a machine or in a namespace of its own.
func (b *bench) runHere(ctx context.Context, cmd *cobra.Command) error {
	m, err := b.place.join(ctx)
	if err != nil {
		return err
	}
	if m.ep.Node() == 0 {
		err = b.measureAll(ctx, m.ep, thisHost(m.nic, m.ep.MaxPayload()+mcd.HeaderLen), cmd)
	} else {
		err = serveBench(ctx, m.ep, m.nic)
	}
	return errors.Join(err, m.close())
}

// measureAll is node 0's part: all sizes, one after the other.
func (b *bench) measureAll(ctx context.Context, e *mcd.Endpoint, h host, cmd *cobra.Command) (err error) {
	for _, size := range b.sizes {
		if size > e.MaxPayload() {
			return fmt.Errorf("--size %d: %w", size, &transport.SizeError{Size: size, Max: e.MaxPayload()})
		}
	}
	note := newProgress(cmd.ErrOrStderr())
	note.say("waiting for the other nodes ...")
	g, err := openGauge(ctx, e)
	if err != nil {
		return err
	}
	table := benchTable{out: cmd.OutOrStdout(), json: b.json}
	for _, size := range b.sizes {
		note.say("%s, %d bytes ...", b.name, size)
		r := &benchResult{Schema: benchSchema, Bench: b.name, benchParameters: b.parameters(e), SizeBytes: size, Host: h}
		err := b.measure(g, ctx, r)
		note.clear()
		if err == nil {
			err = table.write(r)
		}
		if err != nil {
			return err
		}
	}
	for _, network := range b.others {
		for _, size := range b.sizes {
			note.say("%s, %d bytes by %s ...", b.name, size, network)
			r := &benchResult{Schema: benchSchema, Bench: b.name, benchParameters: b.parameters(e), SizeBytes: size, Host: h}
			r.Link, r.Tagged, r.VID, r.PCP, r.Routed = network, false, 0, 0, false
			err := g.beside(ctx, network, r)
			note.clear()
			if err == nil {
				err = table.write(r)
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(g.end(ctx), table.finish())
}

// notPinned is the core of a process that the scheduler places.
const notPinned = -1

func (b *bench) parameters(e *mcd.Endpoint) benchParameters {
	core := notPinned
	if cores, _ := b.place.cores(); len(cores) > 0 { // errors were shown by validate
		core = cores[0]
	}
	p := benchParameters{
		Link: b.place.kind, Nodes: len(e.Nodes()), NICs: e.NICs(), Iters: b.iters, Window: b.window, Batch: b.batch,
		Routed: b.place.manager != "", Pin: core, SpinUS: float64(mcd.DefaultSpin) / float64(time.Microsecond),
	}
	if b.place.vid != noVID {
		p.Tagged, p.VID, p.PCP = true, b.place.vid, b.place.pcp
	}
	return p
}
