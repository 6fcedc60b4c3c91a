package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/bench/programs"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/rawnet"
)

// programBench measures a program that knows package net alone: over rawlane, and over TCP between
// the same interfaces.
type programBench struct{ bench }

var programBenches = []programBench{
	{bench{
		name: "http", short: "A web server's answers, over rawlane and over TCP",
		long: `Node 0 asks node 1's web server, one request after the other on one connection, for so many bytes:
net/http is the same over rawlane's connections and over TCP's. The numbers are whole round trips, in
microseconds.

  rawlane bench http --link ring
  rawlane bench http --interface eth0 --node 0      and --node 1 on the other machine`,
		sizes: []int{64}, iters: 10_000,
	}},
	{bench{
		name: "grpc", short: "A gRPC server's answers, over rawlane and over TCP",
		long: `Node 0 calls node 1's gRPC server, one unary call after the other, with so many bytes, which come back:
gRPC is the same over rawlane's connections and over TCP's. The numbers are whole round trips, in
microseconds.

  rawlane bench grpc --link ring --size 64,4k`,
		sizes: []int{64}, iters: 10_000,
	}},
	{bench{
		name: "netrpc", short: "A net/rpc server's answers, over rawlane and over TCP",
		long: `Node 0 calls node 1's net/rpc server, one call after the other, with so many bytes, which come back:
net/rpc is the same over rawlane's connections and over TCP's. The numbers are whole round trips, in
microseconds.

  rawlane bench netrpc --link ring --size 64,4k`,
		sizes: []int{64}, iters: 10_000,
	}},
}

func newProgramCommand(b programBench) *cobra.Command {
	cmd := b.command(maxIters, "calls per size, not counting those that warm up", b.prepare, b.part)
	cli.SizesFlag(cmd.Flags(), &b.sizes, "size", "", "bytes of an answer")
	b.alike = []string{"size", "iters"}
	return cmd
}

// maxProgramSize bounds --size: gRPC takes messages of 4 MiB.
const maxProgramSize = 1 << 20

func (b *programBench) prepare(*cobra.Command) error {
	if b.cluster.Nodes != 2 {
		return cli.Misuse("--nodes %d: want 2, a client and a server", b.cluster.Nodes)
	}
	for _, size := range b.sizes {
		if size > maxProgramSize {
			return cli.Misuse("--size %d: want at most %d", size, maxProgramSize)
		}
	}
	return nil
}

// Services of node 1: the program, and the connection by which it tells its TCP address, and whose
// end is that of the benchmark.
const (
	programService = "80"
	controlService = "bench"
)

// noTCP is what node 1 tells whose interface has no IPv4 address.
const noTCP = "none"

func (b *programBench) part(ctx context.Context, n *node) error {
	conns, err := rawnet.Open(n.ep, rawnet.Config{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	if n.ep.Node() == 0 {
		err = b.measure(ctx, n, conns)
	} else {
		err = b.serve(ctx, n, conns)
	}
	return errors.Join(err, conns.Close())
}

// serve runs the server over both, until node 0 closes the control connection.
func (b *programBench) serve(ctx context.Context, n *node, conns *rawnet.Net) error {
	ip, ok := addressOf(n.nic)
	if n.nic == "" { // the nodes share this host
		ip, ok = netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	address := noTCP
	if ok {
		tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(ip, 0).String())
		if err != nil {
			return err
		}
		defer programs.Programs[b.name].Serve(tcp)()
		address = tcp.Addr().String()
	}
	l, err := conns.Listen(programService)
	if err != nil {
		return err
	}
	defer programs.Programs[b.name].Serve(l)()
	c, err := acceptOne(ctx, conns, controlService)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprintln(c, address); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// acceptOne accepts a connection to a service.
func acceptOne(ctx context.Context, conns *rawnet.Net, service string) (net.Conn, error) {
	l, err := conns.Listen(service)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // ends an Accept in progress
	c, err := l.Accept()
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return c, nil
}

// measure calls the server by one way and, if node 1 has an IPv4 address, by the other.
func (b *programBench) measure(ctx context.Context, n *node, conns *rawnet.Net) error {
	n.lines.Say("waiting for the server ...")
	c, err := conns.DialWait(ctx, rawnet.Network, "1:"+controlService)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	var tcp string
	if _, err := fmt.Fscanln(c, &tcp); err != nil {
		return fmt.Errorf("node 1: %w", err)
	}
	for _, way := range []struct {
		link, addr string
		dial       programs.Dial
	}{
		{n.form.Link, "1:" + programService, conns.DialContext},
		{"tcp", tcp, new(net.Dialer).DialContext},
	} {
		if way.addr == noTCP {
			continue
		}
		for _, size := range b.sizes {
			r := n.form
			r.SizeBytes, r.Batch = size, 1
			if way.link == "tcp" {
				r.elsewhere(way.link)
			}
			n.lines.Say("%s over %s, %d bytes ...", b.name, r.Link, size)
			if err := b.calls(ctx, &r, way.dial, way.addr); err != nil {
				return fmt.Errorf("over %s: %w", way.link, err)
			}
			if err := n.lines.Write(&r, r.head(), r.line()); err != nil {
				return err
			}
		}
	}
	return nil
}

// calls measures whole round trips.
func (b *programBench) calls(ctx context.Context, r *result, dial programs.Dial, addr string) error {
	call, closeAll, err := programs.Programs[b.name].Client(dial, addr, r.SizeBytes)
	if err != nil {
		return err
	}
	defer closeAll()
	warm := max(r.Iters/warmUpShare, 10)
	h := newTimes()
	var since func() float64
	var begun time.Time
	for i := range warm + r.Iters {
		if i == warm {
			since, begun = allocations(), time.Now()
		}
		start := time.Now()
		if err := call(ctx); err != nil {
			return err
		}
		if i >= warm {
			_ = h.RecordValue(int64(time.Since(start)))
		}
	}
	elapsed := time.Since(begun)
	r.Allocs = since() / float64(r.Iters)
	r.record(h)
	r.recordRates(int64(r.Iters), elapsed)
	r.TxPerS = r.MsgsPerS
	return nil
}

// programLayout is their table.
var programLayout = layout{
	"# Size         p50 (us)        p99        min        max    Calls/s   allocs",
	func(r *result) string {
		return fmt.Sprintf("%-8d %14.2f %10.2f %10.2f %10.2f %10.0f %8.1f\n",
			r.SizeBytes, r.P50US, r.P99US, r.MinUS, r.MaxUS, r.MsgsPerS, r.Allocs)
	},
}
