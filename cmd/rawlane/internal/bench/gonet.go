package bench

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/rawlane/rawlane/bench/gonet"
)

// Beside the latency of rawlane, --beside measures that of package net's UDP and TCP between the
// same interfaces. The nodes tell node 0 the addresses of their echo servers over rawlane.

// oneOrBoth reads one of two words, of which a flag takes either or both.
func oneOrBoth(a, b string) func(string) (string, error) {
	return func(name string) (string, error) {
		if name != a && name != b {
			return "", fmt.Errorf("%q: want %s, %s or %s,%s", name, a, b, a, b)
		}
		return name, nil
	}
}

// serveEcho serves on the first IPv4 address of an interface, and returns the address; "" without
// one.
func serveEcho(ifname string) (address string, stop func(), err error) {
	ip, ok := addressOf(ifname)
	if !ok {
		return "", func() {}, nil
	}
	s, err := gonet.Serve(netip.AddrPortFrom(ip, 0))
	if err != nil {
		return "", nil, err
	}
	return s.Addr().String(), func() { _ = s.Close() }, nil
}

func addressOf(ifname string) (ip netip.Addr, ok bool) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return ip, false
	}
	addresses, _ := ifi.Addrs() // none, if it fails
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			return p.Addr(), true
		}
	}
	return ip, false
}

// beside measures half round trips over a network of package net, the result's link, with each
// other node in turn.
func (c *client) beside(ctx context.Context, r *result) error {
	h := newTimes()
	var since func() float64
	var begun time.Time
	load := gonet.Load{
		Size: r.SizeBytes, Warm: r.Iters / warmUpShare, Iters: r.Iters, Often: c.keepAlive,
		Begin: func() { since, begun = allocations(), time.Now() },
	}
	var elapsed time.Duration
	record := func(half time.Duration) error { return h.RecordValue(int64(half)) }
	for _, peer := range c.peers {
		to, err := netip.ParseAddrPort(c.echoes[peer])
		if err != nil {
			return fmt.Errorf("--beside %s: node %d has no IPv4 address on its interface (ip addr add ... dev ...)",
				r.Link, peer)
		}
		lost, err := gonet.Ping(ctx, r.Link, to, load, record)
		if err != nil {
			return fmt.Errorf("--beside %s: node %d: %w", r.Link, peer, err)
		}
		elapsed += time.Since(begun)
		r.Allocs += since() / float64(r.Iters*len(c.peers))
		r.Lost += uint64(lost)
	}
	if h.TotalCount() == 0 {
		return fmt.Errorf("--beside %s: all %d messages of %d bytes were lost", r.Link, r.Lost, r.SizeBytes)
	}
	r.recordPingPong(h, elapsed)
	return nil
}
