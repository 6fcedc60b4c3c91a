// Package demo is the verb that shows what the library does, step by step.
package demo

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// demoNodes is the size of the cluster: both leaves have members and other nodes of a group.
const demoNodes = 4

// demoTimeout ends a tour that hangs. It is far longer than the tour.
const demoTimeout = time.Minute

// NewCommand returns the verb demo.
func NewCommand() *cobra.Command {
	var kind, keyFile string
	var interfaces []string
	cmd := &cobra.Command{
		Use:   "demo [--link fabric|packet|ring|shm|udp|xdp] [--interface NAME,...]",
		Short: "Take the tour: messages, remote memory, barriers and paths of a small cluster",
		Long: `Starts a cluster of four nodes, sends to nodes, groups and all, loses a message on purpose, chooses
between two paths by VLAN tag, re-routes around a path that two pairs share, writes to another node's
memory, is refused where it may not, counts together in one word, fills a queue, passes barriers of
each kind, loses a node, and measures.

On the fabric, the default, everything happens in memory. With --link packet, ring, udp or xdp the nodes
are network namespaces with real interfaces; an ordinary user gets them inside a user namespace.
With --link shm they reach each other as processes of one host do, through shared memory.
With --interface the nodes are four interfaces of this machine on one network, by link ring unless
--link says another.

  rawlane demo
  rawlane demo --link ring
  rawlane key key && rawlane demo --key-file key
  rawlane demo --interface eth1,eth2,eth3,eth4`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
			defer cancel()
			if len(interfaces) > 0 && !cmd.Flags().Changed("link") {
				kind = "ring"
			}
			return demo(ctx, cmd.OutOrStdout(), kind, keyFile, interfaces)
		},
	}
	launch.KeyFileFlag(cmd, &keyFile)
	cmd.Flags().StringVar(&kind, "link", "fabric", "kind of link: "+launch.LinkKinds())
	launch.LinkChoice(cmd)
	cmd.Flags().StringSliceVar(&interfaces, "interface", nil,
		"take the tour on these interfaces of this machine, one for each node")
	return cmd
}

func demo(ctx context.Context, out io.Writer, kind, keyFile string, interfaces []string) error {
	if err := launch.CheckKeyFile(keyFile); err != nil {
		return err
	}
	net, err := launch.OpenDemoNet(kind, demoNodes, interfaces)
	if err != nil {
		return err
	}
	defer net.Close()
	t := &tour{out: out, net: net, keyFile: keyFile}
	err = t.open()
	for _, stop := range []func(context.Context) error{
		t.echo, t.multicast, t.broadcast, t.drop, t.forge, t.paths, t.reroute,
		t.remote, t.queue, t.fuzzy, t.measure, t.barriers, t.death,
	} {
		if err == nil {
			err = stop(ctx)
		}
	}
	t.close()
	if err != nil {
		return err
	}
	t.say("\nDone. Next: rawlane bench latency --link ring, rawlane bench barrier --nodes 8, " +
		"rawlane doctor, examples/hello.")
	return t.failed
}

// tour shows the features of the library one by one, on the nodes of a demo network.
type tour struct {
	out      io.Writer
	failed   error // the first of out
	net      *launch.DemoNet
	keyFile  string
	tap      tap           // on node 0's link
	tables   []*vlan.Table // by which each node sends
	nodes    []*mcd.Endpoint
	ports    []*mcd.Port // port 1 of each node
	services []*barrier.Service
	domains  []*memfifo.Domain
}

// Ports of the tour.
const (
	tourPort mcd.PortID = 1
	echoPort mcd.PortID = 7
)

func (t *tour) say(format string, args ...any) {
	if _, err := fmt.Fprintf(t.out, format+"\n", args...); t.failed == nil {
		t.failed = err
	}
}

func (t *tour) open() error {
	t.say("A cluster of %d nodes on %s", len(t.net.Links), t.net.Name)
	table := make([]mcd.Node, len(t.net.Links))
	for k, l := range t.net.Links {
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}}
		t.say("  node %d is %v", k, l.MAC())
	}
	for k, l := range t.net.Links {
		routes, err := vlan.NewTable(nil) // untagged, until it is changed
		if err != nil {
			return err
		}
		if k == 0 && t.keyFile != "" {
			t.tap.Link = l
			l = &t.tap
		}
		e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k), Nodes: table, Router: routes, KeyFile: t.keyFile}, l)
		if err != nil {
			return err
		}
		t.tables = append(t.tables, routes)
		t.nodes = append(t.nodes, e)
		p, err := e.OpenPort(tourPort, mcd.PortOptions{})
		if err != nil {
			return err
		}
		t.ports = append(t.ports, p)
		s, err := barrier.Open(e, barrier.Config{})
		if err != nil {
			return err
		}
		t.services = append(t.services, s)
		d, err := memfifo.Open(e, memfifo.Config{})
		if err != nil {
			return err
		}
		t.domains = append(t.domains, d)
		if err := serveEcho(e); err != nil {
			return err
		}
	}
	return nil
}

// serveEcho makes a node send back whatever comes to its port 7. The handler runs in the node's
// progress, whether or not the program waits for anything.
func serveEcho(e *mcd.Endpoint) error {
	var echo *mcd.Port
	ready := make(chan struct{})
	echo, err := e.OpenPort(echoPort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		<-ready
		for _, m := range batch {
			_ = echo.TrySend(m.NIC, mcd.To(m.From), m.Payload) // a lost echo is the asker's to notice
		}
	}})
	close(ready)
	return err
}

func (t *tour) close() {
	for _, e := range t.nodes {
		_ = e.Close() // the tour is over
	}
}

func (t *tour) echo(ctx context.Context) error {
	const text = "hello, raw Ethernet"
	to := mcd.Addr{Node: 1, Port: echoPort}
	if err := t.ports[0].Send(ctx, to, []byte(text)); err != nil {
		return err
	}
	got, err := t.receive(ctx, 0)
	if err != nil {
		return err
	}
	t.say("\nSend:      0:%d -> %v %q; %v answered %q", tourPort, to, text, got.From, got.Buf[:got.N])
	return nil
}

func (t *tour) multicast(ctx context.Context) error {
	const group mcd.GroupID = 5
	for _, k := range []int{1, 2} {
		if err := t.nodes[k].Join(group); err != nil {
			return err
		}
	}
	if err := t.ports[0].Multicast(ctx, group, tourPort, []byte("members only")); err != nil {
		return err
	}
	for _, k := range []int{1, 2} {
		got, err := t.receive(ctx, k)
		if err != nil {
			return err
		}
		t.say("Multicast: node %d, a member of group %d, received %q", k, group, got.Buf[:got.N])
	}
	return nil
}

func (t *tour) broadcast(ctx context.Context) error {
	if err := t.ports[3].Broadcast(ctx, tourPort, []byte("to all")); err != nil {
		return err
	}
	for k := range 3 {
		got, err := t.receive(ctx, k)
		if err != nil {
			return err
		}
		t.say("Broadcast: node %d received %q from %v", k, got.Buf[:got.N], got.From)
	}
	// Node 3 was no member of the group and is the sender of the broadcast: it must have received
	// nothing.
	if n := t.nodes[3].Counters().RxMessages; n != 0 {
		return fmt.Errorf("node 3 received %d messages that were for others", n)
	}
	return nil
}

// drop sends to a port without an owner, and shows the receiver's counter.
func (t *tour) drop(ctx context.Context) error {
	if err := t.ports[0].Send(ctx, mcd.Addr{Node: 2, Port: 99}, nil); err != nil {
		return err
	}
	if _, err := t.deliver(ctx, 0, 2, nil); err != nil { // it comes behind the other one
		return err
	}
	c := t.nodes[2].Counters()
	if c.DropNoPort != 1 {
		return fmt.Errorf("node 2 counted %d messages to a port without owner, want 1", c.DropNoPort)
	}
	t.say("Drop:      node 2 counted drop_no_port %d: nobody owns port 99 there", c.DropNoPort)
	return nil
}

// deliver sends a message between two nodes' ports 1, and waits for it there.
func (t *tour) deliver(ctx context.Context, from, to int, b []byte) (*mcd.RecvDesc, error) {
	if err := t.ports[from].Send(ctx, mcd.Addr{Node: mcd.NodeID(to), Port: tourPort}, b); err != nil {
		return nil, err
	}
	return t.receive(ctx, to)
}

// receive waits for the next message to a node's port 1.
func (t *tour) receive(ctx context.Context, node int) (*mcd.RecvDesc, error) {
	d := &mcd.RecvDesc{Buf: make([]byte, t.nodes[node].MaxPayload())}
	if err := t.ports[node].PostRecv(d); err != nil {
		return nil, err
	}
	if err := d.Wait(ctx); err != nil {
		return nil, fmt.Errorf("node %d waits for a message: %w", node, err)
	}
	return d, nil
}
