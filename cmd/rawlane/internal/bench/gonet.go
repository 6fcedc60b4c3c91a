package bench

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rawlane/rawlane/bench/gonet"
)

// Beside the latency of rawlane, --beside measures that of package net's UDP and TCP between the
// same interfaces. The nodes tell node 0 the addresses of their echo servers over rawlane.

// parseNetwork reads one of the networks of --beside.
func parseNetwork(name string) (string, error) {
	if name != "udp" && name != "tcp" {
		return "", fmt.Errorf("%q: want udp, tcp or udp,tcp", name)
	}
	return name, nil
}

// serveEcho serves on the first IPv4 address of an interface; nil without one.
func serveEcho(ifname string) (*gonet.Server, error) {
	ip, ok := addressOf(ifname)
	if !ok {
		return nil, nil
	}
	return gonet.Serve(netip.AddrPortFrom(ip, 0))
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

// packAddress makes the address of an echo server the value of an answer; 0 without a server.
func packAddress(s *gonet.Server) uint64 {
	if s == nil {
		return 0
	}
	b := s.Addr().Addr().As4()
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(s.Addr().Port())
}

func unpackAddress(v uint64) netip.AddrPort {
	ip := netip.AddrFrom4([4]byte{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16)})
	return netip.AddrPortFrom(ip, uint16(v))
}

// beside measures half round trips over a network of package net, with each other node in turn.
func (c *client) beside(ctx context.Context, network string, r *benchResult) error {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	load := gonet.Load{
		Size: r.SizeBytes, Warm: int(float64(r.Iters) * warmUp), Iters: r.Iters,
		Often: func(ctx context.Context) error { return c.keepAlive(ctx, time.Now()) },
	}
	begun, since := time.Now(), allocations()
	for _, peer := range c.peers {
		v, err := c.ask(ctx, peer, askAddress)
		if err != nil {
			return err
		}
		if v == 0 {
			return fmt.Errorf("--beside %s: node %d has no IPv4 address on its interface (ip addr add ... dev ...)",
				network, peer)
		}
		record := func(half time.Duration) error { return h.RecordValue(int64(half)) }
		if err := gonet.Ping(ctx, network, unpackAddress(v), load, record); err != nil {
			return fmt.Errorf("--beside %s: node %d: %w", network, peer, err)
		}
	}
	r.recordPingPong(h, time.Since(begun))
	r.Allocs = since() / float64(h.TotalCount())
	return nil
}
