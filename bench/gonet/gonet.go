// Package gonet is the comparison with package net: half round trips over its UDP and TCP sockets.
package gonet

import (
	"errors"
	"io"
	"net"
	"net/netip"
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
