package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Beside rawlane's latency, that of what one would use otherwise: package net's UDP and TCP between
// the same machines, by the same interfaces. The nodes tell each other their IP addresses over
// rawlane.

// networks is a flag: some of tcp and udp, separated by commas.
type networks []string

// Set parses the flag.
func (n *networks) Set(text string) error {
	*n = strings.Split(text, ",")
	for _, name := range *n {
		if name != "udp" && name != "tcp" {
			return fmt.Errorf("%q: want udp, tcp or udp,tcp", name)
		}
	}
	return nil
}

// String formats the flag as Set parses it.
func (n *networks) String() string { return strings.Join(*n, ",") }

// Type names the value in the help.
func (n *networks) Type() string { return "udp,tcp" }

// echoServer echoes on a TCP and a UDP port of one number.
type echoServer struct {
	address netip.AddrPort
	tcp     net.Listener
	udp     net.PacketConn
}

// openEcho serves on the first IPv4 address of an interface. Without one the server is nil.
func openEcho(ifname string) (*echoServer, error) {
	ip, ok := addressOf(ifname)
	if !ok {
		return nil, nil
	}
	tcp, err := net.Listen("tcp4", netip.AddrPortFrom(ip, 0).String())
	if err != nil {
		return nil, err
	}
	s := &echoServer{tcp: tcp, address: tcp.Addr().(*net.TCPAddr).AddrPort()}
	if s.udp, err = net.ListenPacket("udp4", s.address.String()); err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	go s.serveTCP() // until close
	go s.serveUDP() // likewise
	return s, nil
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

func (s *echoServer) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		go func() { // until the other end closes
			_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // without splice(2), which is for bulk
			_ = c.Close()
		}()
	}
}

func (s *echoServer) serveUDP() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := s.udp.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = s.udp.WriteTo(b[:n], from) // one that is lost is the asker's to notice
	}
}

// pack is the address as an answer's value; 0 without a server.
func (s *echoServer) pack() uint64 {
	if s == nil {
		return 0
	}
	b := s.address.Addr().As4()
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(s.address.Port())
}

func unpackAddress(v uint64) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16)}), uint16(v))
}

func (s *echoServer) close() {
	if s != nil {
		_, _ = s.tcp.Close(), s.udp.Close() // they were open
	}
}

// beside measures half round trips over a network of package net, with each of the other nodes in
// turn.
func (g *client) beside(ctx context.Context, network string, r *benchResult) error {
	h := hdrhistogram.New(1, int64(10*time.Second), 3)
	begun, since := time.Now(), allocations()
	for _, peer := range g.peers {
		v, err := g.asker.ask(ctx, peer, askAddress)
		if err != nil {
			return err
		}
		if v == 0 {
			return fmt.Errorf("--beside %s: node %d has no IPv4 address on its interface (ip addr add ... dev ...)", network, peer)
		}
		if err := g.exchange(ctx, network, unpackAddress(v), r, h); err != nil {
			return fmt.Errorf("--beside %s: node %d: %w", network, peer, err)
		}
	}
	if h.TotalCount() == 0 {
		return fmt.Errorf("--beside %s: all %d messages of %d bytes were lost", network, r.Lost, r.SizeBytes)
	}
	r.record(h)
	r.Allocs = since() / float64(h.TotalCount())
	r.MsgsPerS = float64(2*h.TotalCount()) / time.Since(begun).Seconds()
	r.MBPerS = r.MsgsPerS * float64(r.SizeBytes) / 1e6
	r.TxPerS = r.MsgsPerS / 2
	return nil
}

// ipPatience is how long 1000 round trips may take.
const ipPatience = 10 * time.Second

// exchange measures half round trips with one address.
func (g *client) exchange(ctx context.Context, network string, to netip.AddrPort, r *benchResult, h *hdrhistogram.Histogram) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, to.String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a read in progress
	b := make([]byte, max(r.SizeBytes, 1))                   // a stream has no empty messages
	warm := int(float64(r.Iters) * warmUp)
	for i := range warm + r.Iters {
		if i%1000 == 0 {
			if err := errors.Join(g.keepAlive(ctx, time.Now()), c.SetDeadline(time.Now().Add(ipPatience))); err != nil {
				return err
			}
		}
		start := time.Now()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if i >= warm {
			_ = h.RecordValue(int64(time.Since(start) / 2)) // below the deadline, and so in range
		}
	}
	return nil
}
