// Package gonet is the comparison with package net: half round trips over its UDP and TCP sockets.
package gonet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// Server echoes on a TCP and a UDP port of one number.
type Server struct {
	addr netip.AddrPort
	tcp  net.Listener
	udp  net.PacketConn
}

// Serve echoes on an address until Close. Port 0 chooses a port.
func Serve(addr netip.AddrPort) (*Server, error) {
	tcp, err := net.Listen("tcp", addr.String())
	if err != nil {
		return nil, err
	}
	s := &Server{tcp: tcp, addr: tcp.Addr().(*net.TCPAddr).AddrPort()}
	if s.udp, err = net.ListenPacket("udp", s.addr.String()); err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	go s.serveTCP() // until Close
	go s.serveUDP() // until Close
	return s, nil
}

// Addr returns the address of both ports.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Close ends the server.
func (s *Server) Close() error { return errors.Join(s.tcp.Close(), s.udp.Close()) }

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept() // with TCP_NODELAY, Go's default
		if err != nil {
			return
		}
		go func() { // until the client closes
			_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // without splice(2), which is for bulk
			_ = c.Close()
		}()
	}
}

func (s *Server) serveUDP() {
	b := make([]byte, 1<<16)
	for {
		n, from, err := s.udp.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = s.udp.WriteTo(b[:n], from) // the client notices a lost echo
	}
}

// Load says what Ping sends.
type Load struct {
	Size  int
	Warm  int                             // round trips before those that count
	Iters int                             // round trips that count
	Often func(ctx context.Context) error // called before every 1000th round trip; may be nil
	Begin func()                          // called before the first that counts; may be nil
}

// timeout bounds 1000 round trips.
const timeout = 10 * time.Second

// Ping exchanges messages with a server over "udp" or "tcp", and records half of each round trip.
func Ping(
	ctx context.Context, network string, to netip.AddrPort, load Load, record func(half time.Duration) error,
) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, to.String())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends a read in progress
	b := make([]byte, max(load.Size, 1))                     // a stream has no empty messages
	for i := range load.Warm + load.Iters {
		if i%1000 == 0 {
			if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
				return err
			}
			if load.Often != nil {
				if err := load.Often(ctx); err != nil {
					return err
				}
			}
		}
		if i == load.Warm && load.Begin != nil {
			load.Begin()
		}
		start := time.Now()
		if _, err := c.Write(b); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, b); err != nil {
			return err
		}
		if half := time.Since(start) / 2; i >= load.Warm {
			if err := record(half); err != nil {
				return err
			}
		}
	}
	return nil
}
