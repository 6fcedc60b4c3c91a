//go:build linux && !rawlane_portable

package udp

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// routeMTU returns the MTU of the path to an address as the kernel knows it: the interface's, the
// route's, or what a router has said since (RFC 1191, RFC 8201).
func routeMTU(to netip.AddrPort) int {
	family, level, option := unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	if to.Addr().Is4() {
		family, level, option = unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unknownMTU
	}
	defer unix.Close(fd)
	if unix.Connect(fd, sockaddr(to)) != nil {
		return unknownMTU
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return unknownMTU
	}
	return mtu
}
