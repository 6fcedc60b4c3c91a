package bench

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/transport"
)

// messageBench measures plain messages.
type messageBench struct {
	bench
	window, batch int
	inPlace       bool
	measure       func(*client, context.Context, *result) error
	networks      []string // of package net, to be measured as well
	breakdown     bool
	plot          string    // the file of the breakdown's picture; "" for none
	link          *passages // of this process's node, if there is a breakdown
}

var messageBenches = []messageBench{
	{
		bench: bench{
			name:  "latency",
			short: "Half of a message's round trip",
			long: `Node 0 sends a message and awaits its echo, with each of the other nodes in turn. The numbers are
half of the time from before the send until after the receive, in microseconds.

With --breakdown the kernel stamps frames as they pass the driver, and round trips with node 1 are split
into send, wire, wake-up, receive and program, with and without the stamps' own cost.

With --beside tcp messages of 0 bytes have no line: a stream has none.

With a key file each size is measured twice, without the key and with it, which take turns. The last
columns say by how much longer it takes (p50 divided by that without), and how many messages node 0
has authenticated and how many frames it has refused meanwhile.

  rawlane bench latency --link ring --size 1:1k
  rawlane bench latency --link ring --key-file FILE
  rawlane bench latency --link ring --beside udp,tcp
  rawlane bench latency --link ring --breakdown --plot FILE.svg
  rawlane bench latency --interface eth0 --node 0 --pin 2      and --node 1 on the other machine`,
			sizes: []int{4, 64, 1024, 1400}, iters: 20_000, keyCost: &keyCost{},
		},
		batch: 1, measure: (*client).latency,
	},
	{
		bench: bench{
			name:  "bandwidth",
			short: "Bytes a second, in windows",
			long: `Node 0 posts a window of messages to node 1, which answers once it has received them. The numbers
are of messages that arrived; microseconds are a window's time divided by its messages.

  rawlane bench bandwidth --link ring --window 256 --size 1400`,
			sizes: []int{64, 256, 1024, 1400}, iters: 200_000,
		},
		window: 64, batch: rateBatch, measure: (*client).bandwidth,
	},
	{
		bench: bench{
			name:  "rate",
			short: "Messages a second, without pause",
			long: `Node 0 posts messages to node 1 in batches as quickly as the link takes them. What the receiver had
no room for is lost, and shown.

  rawlane bench rate --link ring --size 64
  rawlane bench rate --link udp --size 1398 --batch 44 --in-place`,
			sizes: []int{64, 1400}, iters: 1_000_000,
		},
		batch: rateBatch, measure: (*client).rate,
	},
	{
		bench: bench{
			name:  "logp",
			short: "What a message costs its sender, its receiver and the link",
			long:  logpLong,
			sizes: []int{4, 64}, iters: 20_000,
		},
		batch: 1, measure: (*client).logp,
	},
}

const (
	// maxIters keeps a run's end in sight: half an hour of the quickest.
	maxIters = 1_000_000_000
	// maxWindow is what a receiver's ring holds at its default size.
	maxWindow = 1024
)

func newMessageCommand(b messageBench) *cobra.Command {
	cmd := b.command(maxIters, "messages per size, not counting those that warm up", b.prepare, b.part)
	f := cmd.Flags()
	cli.SizesFlag(f, &b.sizes, "size", "", "payload sizes")
	switch b.name {
	case "latency":
		cli.ListFlag(f, &b.networks, "beside", "udp,tcp",
			"measure these of package net as well, between the same interfaces", oneOrBoth("udp", "tcp"))
		cli.Choice(cmd, "beside", "udp", "tcp")
		b.breakdownFlags(f)
	case "bandwidth":
		f.IntVar(&b.window, "window", b.window, "messages sent before an answer is awaited")
		fallthrough
	case "rate":
		f.IntVar(&b.batch, "batch", b.batch, "messages sent in one call")
		f.BoolVar(&b.inPlace, "in-place", false, "send messages from where they are built, which copies nothing")
	}
	return cmd
}

func (b *messageBench) prepare(*cobra.Command) error {
	if b.name == "bandwidth" && (b.window < 1 || b.window > maxWindow) {
		return cli.Misuse("--window %d: want 1 to %d", b.window, maxWindow)
	}
	if b.batch < 1 || b.batch > maxWindow {
		return cli.Misuse("--batch %d: want 1 to %d", b.batch, maxWindow)
	}
	if err := b.prepareBreakdown(); err != nil {
		return err
	}
	if len(b.networks) > 0 && (b.cluster.Kind == "fabric" || b.cluster.Kind == launch.OverSHM) {
		return cli.Misuse("--beside: there is no IP in memory; " +
			"give --link packet, ring, udp or xdp, or --interface")
	}
	for _, size := range b.sizes {
		if err := b.cluster.CheckSize(size); err != nil {
			return cli.Misuse("%w %s", err, longer)
		}
	}
	return nil
}

// part measures on node 0; the other nodes answer it.
func (b *messageBench) part(ctx context.Context, n *node) error {
	n.link = b.link
	if n.ep.Node() != 0 {
		return serve(ctx, n)
	}
	n.lines.Say("waiting for the other nodes ...")
	c, err := openClient(ctx, n.ep)
	if err != nil {
		return err
	}
	c.link = n.link
	if err := b.measureAll(ctx, n, c); err != nil {
		return err
	}
	return c.end(ctx)
}

// longer is what to do about messages that do not fit.
const longer = "(a larger --mtu, or bench put, which writes any length)"

// check says what is wrong with the flags for this endpoint.
func (b *messageBench) check(n *node) error {
	for _, size := range b.sizes {
		if most := b.keyCost.room(n.ep); size > most {
			return fmt.Errorf("--size %d: %w %s", size, &transport.SizeError{Size: size, Max: most}, longer)
		}
	}
	return cli.CheckFile("plot", b.plot)
}

// measureAll is node 0's part, once the other nodes answer.
func (b *messageBench) measureAll(ctx context.Context, n *node, c *client) error {
	if err := b.check(n); err != nil {
		return err
	}
	var costs *LogPTimes // of the first size
	var splits []*result // of --breakdown
	networks := []string{""}
	if b.keyCost.last(n.ep) {
		networks = append(networks, b.networks...)
	}
	for _, network := range networks {
		for row, size := range b.sizes {
			if network == "tcp" && size == 0 {
				continue // a stream has no empty messages
			}
			r, measure, keys := n.form, b.measure, b.keyCost
			r.SizeBytes, r.Window, r.Iters = size, b.window, keys.share(b.iters)
			r.Batch, r.InPlace = b.batch, b.inPlace
			if network != "" {
				r.elsewhere(network)
				r.Iters, measure, keys = b.iters, (*client).beside, nil
			}
			n.lines.Say("%s by %s, %d bytes ...", b.name, r.Link, size)
			if err := keys.measure(ctx, c, row, &r, measure); err != nil {
				return err
			}
			if !keys.ends() {
				continue
			}
			if err := n.lines.Write(&r, r.head(), r.line()); err != nil {
				return err
			}
			if costs == nil {
				costs = r.LogPTimes
			}
			if r.Breakdown != nil {
				splits = append(splits, &r)
			}
		}
	}
	if costs != nil && b.formats == (cli.Formats{}) {
		if _, err := io.WriteString(n.lines.Out, costs.usage()); err != nil {
			return err
		}
	}
	return b.savePlot(splits)
}
