//go:build linux && !rawlane_portable

package udp

import (
	"net/netip"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scout finds out from which address the host sends to a station, by a socket that sends nothing.
// It is opened with the link, in its network namespace.
type scout struct {
	mu     sync.Mutex
	fd     int    // -1: there is none, as the link has one address for all
	device string // that the link's own socket is bound to, if any
}

// openScout makes the scout of a link that is bound to no address. Without one the link takes no
// notice when the host's change.
func (s *socket) openScout(at netip.Addr, ifname string) {
	s.scout.device = ifname
	if !at.IsUnspecified() {
		return
	}
	if fd, err := unix.Socket(s.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err == nil {
		s.scout.fd = fd
	}
}

// source returns from which address the host sends to a station now; the zero Addr if it has no way
// there, or if the link is bound to its address.
func (s *socket) source(to *address) netip.Addr {
	c := &s.scout
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 || !disconnected(c.fd, c.device) || connectTo(c.fd, to) != 0 {
		return netip.Addr{}
	}
	return sourceOf(c.fd)
}

func (c *scout) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd >= 0 {
		_ = unix.Close(c.fd) // it has sent nothing
		c.fd = -1
	}
}

// sourceOf returns the address that a connected socket sends from.
func sourceOf(fd int) netip.Addr {
	at, err := unix.Getsockname(fd)
	if err != nil {
		return netip.Addr{}
	}
	switch at := at.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(at.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(at.Addr).Unmap()
	}
	return netip.Addr{}
}

// connectTo is connect(2), which never blocks on such a socket.
func connectTo(fd int, to *address) unix.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw)), uintptr(to.len))
	return e
}

// disconnected ends a socket's connection, so that the next one finds out anew by which address and
// interface the way leads, and reports whether it could: those of the last one would stay.
func disconnected(fd int, device string) bool {
	nobody := address{len: unix.SizeofSockaddrInet6}
	nobody.raw.Family = unix.AF_UNSPEC
	return connectTo(fd, &nobody) == 0 && (device == "" || unix.BindToDevice(fd, device) == nil)
}
