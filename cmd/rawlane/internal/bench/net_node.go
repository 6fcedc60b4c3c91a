package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/rawlane/rawlane/bench/gonet"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/rawnet"
	"github.com/rawlane/rawlane/rpc"
)

// benchService is that of the connections and calls.
const benchService = "bench"

// pushTimes measures a Push through a FIFO, for comparison.
func (n *memoryNode) pushTimes(ctx context.Context, r *memoryResult) error {
	push, buf := &memoryResult{result: r.result}, make([]byte, r.SizeBytes)
	send := func() error { return n.queue.Push(ctx, n.data) }
	receive := func() error { _, err := n.records.Pop(ctx, buf); return err }
	err := n.pingPong(push, send, receive, unchecked)
	r.PushUS = push.P50US
	return err
}

// conn measures a connection between nodes 0 and 1.
func (n *memoryNode) conn(ctx context.Context, r *memoryResult) error {
	if err := n.pushTimes(ctx, r); err != nil {
		return err
	}
	all, err := rawnet.Open(n.ep, rawnet.Config{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	c, err := n.connect(ctx, all)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends a read in progress
		defer stop()
		err = errors.Join(n.exchange(ctx, r, c), c.Close())
	}
	stats := all.Counters().Frames
	r.Frames, r.Again = stats.Sent, stats.Retransmitted
	return errors.Join(err, n.meet(ctx), all.Close())
}

// meet returns when both nodes are there.
func (n *memoryNode) meet(ctx context.Context) error {
	return errors.Join(n.other.Signal(ctx), n.notified(ctx))
}

// connect has node 0 dial node 1.
func (n *memoryNode) connect(ctx context.Context, all *rawnet.Net) (net.Conn, error) {
	if n.ep.Node() == 0 {
		if err := n.meet(ctx); err != nil {
			return nil, err
		}
		return all.DialContext(ctx, rawnet.Network, "1:"+benchService)
	}
	l, err := all.Listen(benchService)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // ends an Accept in progress
	if err := n.meet(ctx); err != nil {
		return nil, err
	}
	return l.Accept()
}

// exchange measures ping-pong, a stream, and ping-pong over TCP.
func (n *memoryNode) exchange(ctx context.Context, r *memoryResult, c net.Conn) error {
	buf := make([]byte, r.SizeBytes)
	send := func() error { _, err := c.Write(n.data); return err }
	receive := func() error { _, err := io.ReadFull(c, buf); return err }
	if err := n.pingPong(r, send, receive, unchecked); err != nil {
		return err
	}
	if err := n.compare("conn", buf); err != nil {
		return err
	}
	count, done := n.many(), []byte{0}
	if n.ep.Node() == 1 {
		for range count {
			if err := receive(); err != nil {
				return err
			}
		}
		if _, err := c.Write(done); err != nil {
			return err
		}
		return n.serveTCP(c)
	}
	start := time.Now()
	for range count {
		if err := send(); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(c, done); err != nil {
		return err
	}
	r.Streamed = count
	r.recordRates(int64(count), time.Since(start))
	return n.pingTCP(ctx, r, c)
}

// serveTCP echoes over package net's TCP until node 0 has measured it. It tells node 0 the address
// over a connection.
func (n *memoryNode) serveTCP(c net.Conn) error {
	address, stop, err := serveEcho(n.nic)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := fmt.Fprintf(c, "%-50s", address); err != nil {
		return err
	}
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

// pingTCP measures half round trips over package net's TCP, where node 1 has an address.
func (n *memoryNode) pingTCP(ctx context.Context, r *memoryResult, c net.Conn) error {
	address := make([]byte, 50)
	if _, err := io.ReadFull(c, address); err != nil {
		return err
	}
	var text string
	if _, err := fmt.Sscan(string(address), &text); err == nil {
		to, err := netip.ParseAddrPort(text)
		if err != nil {
			return err
		}
		h := newTimes()
		load := gonet.Load{Size: r.SizeBytes, Warm: r.Iters / warmUpShare, Iters: r.Iters}
		record := func(half time.Duration) error { return h.RecordValue(int64(half)) }
		if _, err := gonet.Ping(ctx, "tcp", to, load, record); err != nil {
			return err
		}
		r.TCPUS = float64(h.ValueAtPercentile(50)) / 1e3
	}
	_, err := c.Write([]byte{1})
	return err
}

// call measures calls from node 0 to node 1.
func (n *memoryNode) call(ctx context.Context, r *memoryResult) error {
	if err := n.pushTimes(ctx, r); err != nil {
		return err
	}
	d, err := rpc.Open(n.ep, rpc.Config{PeerTimeout: launch.AskTimeout})
	if err != nil {
		return err
	}
	inline := memoryResult{result: r.result}
	for i, into := range []*memoryResult{&inline, r} {
		if err = n.calledAt(ctx, d, into, benchService+strconv.Itoa(i), i == 0); err != nil {
			break
		}
	}
	r.InlineUS = inline.P50US
	stats := d.Counters().Frames
	r.Frames, r.Again = stats.Sent, stats.Retransmitted
	return errors.Join(err, n.meet(ctx), d.Close())
}

// calledAt measures calls to a service of node 1, whose handler is inline or not.
func (n *memoryNode) calledAt(ctx context.Context, d *rpc.Domain, r *memoryResult, service string, inline bool) error {
	if n.ep.Node() == 1 {
		echo := func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
			return append(resp, req...), nil
		}
		s, err := d.Serve(service, rpc.ServerConfig{Handler: echo, Inline: inline})
		if err != nil {
			return err
		}
		return errors.Join(n.calls(ctx, r, nil), s.Close())
	}
	resp := make([]byte, 0, r.SizeBytes)
	var got []byte
	err := n.calls(ctx, r, func() (err error) {
		got, err = d.CallWith(ctx, 1, service, n.data, rpc.Options{Response: resp})
		return err
	})
	if err != nil {
		return err
	}
	return n.compare("rpc", got)
}
