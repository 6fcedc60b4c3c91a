//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// routeMTU returns the MTU of the path to an address as the kernel knows it: the interface's, the
// route's, or what a router has said since (RFC 1191, RFC 8201).
func routeMTU(to netip.AddrPort) int {
	mtu := unknownMTU
	if fd, err := connected(to); err == nil {
		if known, err := pathMTU(fd, to); err == nil {
			mtu = known
		}
		_ = unix.Close(fd) // it was only to ask
	}
	return mtu
}

// connected returns a socket that is connected to an address.
func connected(to netip.AddrPort) (fd int, err error) {
	if fd, err = unix.Socket(familyOf(to.Addr()), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
		if err = unix.Connect(fd, sockaddr(to)); err != nil {
			_ = unix.Close(fd) // the first error is the one to report
		}
	}
	return fd, err
}

// pathMTU returns what the kernel knows of a connected socket's path.
func pathMTU(fd int, to netip.AddrPort) (int, error) {
	if to.Addr().Is4() {
		return unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
	}
	return unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
}

// Probes of a path, and how long each is given to be refused by a router.
const (
	pathProbes     = 5
	pathProbePause = 100 * time.Millisecond
)

// probePath sends packets of the length that the path is said to take, until it takes no less. They
// are introductions of nobody, which a station drops.
func probePath(ctx context.Context, to netip.AddrPort, mac transport.MAC) (int, error) {
	fd, err := connected(to)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	headers := 20 + 8
	if to.Addr().Is6() {
		headers = 40 + 8
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
	} else {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}
	if err != nil {
		return 0, err
	}
	mtu := 0
	for range pathProbes {
		if mtu, err = pathMTU(fd, to); err != nil {
			return 0, err
		}
		f := transport.Frame{Dst: mac, Src: transport.MAC{2}, EtherType: introductionType}
		f.Payload = make([]byte, max(min(mtu, maxFrame+headers)-headers-transport.HeaderLen, 0))
		err := unix.Send(fd, f.AppendTo(nil), 0)
		if err != nil && err != unix.EMSGSIZE && err != unix.ECONNREFUSED {
			return 0, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(pathProbePause):
		}
	}
	return mtu, nil
}
