//go:build !linux || rawlane_portable

package udp

import (
	"net"
	"net/netip"
)

// source returns from which address the host sends to a station now; the zero Addr if it has no way
// there, or if the link is bound to its address.
func (s *socket) source(to *address) netip.Addr {
	own, ok := s.conn.LocalAddr().(*net.UDPAddr)
	if !ok || !own.IP.IsUnspecified() {
		return netip.Addr{}
	}
	probe, err := net.DialUDP(network(to.at), nil, net.UDPAddrFromAddrPort(to.at)) // which sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer probe.Close()
	return probe.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}
