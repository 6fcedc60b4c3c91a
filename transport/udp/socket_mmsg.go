//go:build linux && !rawlane_portable

package udp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

// socket is a UDP socket that sends and receives trains: datagrams of one length, the last of which
// may be shorter, that go through the kernel as one.
//
// The runtime does not watch it: for a socket in an epoll set the kernel spends 0.1 µs per sent
// frame, and wakes a thread for each that arrives.
type socket struct {
	fd     int // -1 when closed; guarded by the caller's lock in send, by rxMu in receive
	family int
	wakeup *netpoll.Wakeup
	out    couplings
	near   connection
	scout  scout

	fragmented atomic.Uint64 // datagrams sent in fragments
	trains     atomic.Uint64 // sent

	sentStamps timestamping.Queue // guarded by the caller's lock in send
	stamping   timestamping.Switch

	rxMu   sync.Mutex  // guards fd, against a Close during receive
	in     inbox       // of the polling goroutine
	left   atomic.Bool // the inbox has datagrams that no Poll has taken
	masked atomic.Bool
	waits  atomic.Int32 // that are in progress
	woken  atomic.Bool  // a wait has ended since the last look at both sockets
	lost   uint64       // drops of sockets that are closed; guarded by rxMu
}

// address is a socket address as system calls take it.
type address struct {
	raw unix.RawSockaddrInet6 // or, in the same memory, a RawSockaddrInet4
	len uint32
}

// onInterfaceAlone says that the socket of a group's member is reached by its interface alone.
const onInterfaceAlone = true

// openSocket makes a socket bound to an address or, for a multicast group, to its port on an
// interface: a socket bound to an address does not hear groups.
func openSocket(at netip.AddrPort, ifname string, group netip.Addr, receiveBuffer int) (_ *socket, err error) {
	s := &socket{family: familyOf(at.Addr()), near: connection{fd: -1}, scout: scout{fd: -1}}
	s.fd, err = unix.Socket(s.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(s.fd) // the first error is the one to report
		}
	}()
	s.setBuffer(unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, receiveBuffer)
	s.setBuffer(unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, sendBuffer)
	s.fragment(false)
	if group.IsValid() {
		if err := s.joinGroup(ifname, group); err != nil {
			return nil, fmt.Errorf("join %v on interface %q: %w", group, ifname, err)
		}
		at = netip.AddrPortFrom(unspecified(at.Addr()), at.Port())
	}
	if err := unix.Bind(s.fd, sockaddr(at)); err != nil {
		return nil, err
	}
	if s.wakeup, err = netpoll.NewWakeup(s.fd); err != nil {
		return nil, err
	}
	s.wakeup.OnError(s.forgetStamps)
	s.wakeup.AskLeft(s.left.Load)
	s.in.init()
	if !group.IsValid() {
		ifname = ""
	}
	s.openBeside(ifname, receiveBuffer)
	s.openScout(at.Addr(), ifname)
	return s, nil
}

// familyOf returns the family of the sockets that have such an address.
func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// sendBuffer holds a batch of trains.
const sendBuffer = 4 << 20

// setBuffer sets how much the kernel keeps: past the system's limit with CAP_NET_ADMIN, else up to
// it.
func (s *socket) setBuffer(option, force, size int) {
	if unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, option, size)
	}
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	if at.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16(), ZoneId: zone(at.Addr())}
}

// address makes a socket address of the socket's family.
func (s *socket) address(at netip.AddrPort) (a address) {
	if s.family == unix.AF_INET {
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&a.raw))
		in.Family, in.Addr = unix.AF_INET, at.Addr().As4()
		binary.BigEndian.PutUint16(bigEndian(&in.Port), at.Port())
		a.len = unix.SizeofSockaddrInet4
		return a
	}
	a.raw.Family, a.raw.Addr, a.raw.Scope_id = unix.AF_INET6, at.Addr().As16(), zone(at.Addr())
	binary.BigEndian.PutUint16(bigEndian(&a.raw.Port), at.Port())
	a.len = unix.SizeofSockaddrInet6
	return a
}

// addrPort is address's inverse.
func (a *address) addrPort() netip.AddrPort {
	if a.raw.Family == unix.AF_INET {
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(&a.raw))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), binary.BigEndian.Uint16(bigEndian(&in.Port)))
	}
	ip := netip.AddrFrom16(a.raw.Addr).Unmap()
	if a.raw.Scope_id != 0 {
		ip = ip.WithZone(strconv.Itoa(int(a.raw.Scope_id)))
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(bigEndian(&a.raw.Port)))
}

// zoned returns an address as received ones are written: its zone is the interface's number.
func zoned(a netip.Addr) netip.Addr {
	if n := zone(a); n != 0 {
		return a.WithZone(strconv.Itoa(int(n)))
	}
	return a
}

// bigEndian is the memory of a port.
func bigEndian(port *uint16) []byte { return (*[2]byte)(unsafe.Pointer(port))[:] }

// zone returns the number of the interface that a link-local address belongs to.
func zone(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if n, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	if ifi, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(ifi.Index)
	}
	return 0
}

// port returns the port that the socket is bound to.
func (s *socket) port() (port uint16, err error) {
	sa, err := unix.Getsockname(s.fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		port = uint16(sa.Port)
	case *unix.SockaddrInet6:
		port = uint16(sa.Port)
	}
	return port, err
}

// joinGroup has the socket belong to an interface alone, and send to a group and hear it there:
// what other programs of this host send, too.
func (s *socket) joinGroup(ifname string, group netip.Addr) error {
	if err := unix.BindToDevice(s.fd, ifname); err != nil {
		return err
	}
	ifi, err := net.InterfaceByName(ifname) // not "", which binds to none
	if err != nil {
		return err
	}
	if s.family == unix.AF_INET {
		request := &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(ifi.Index)}
		return errors.Join(
			unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, request),
			unix.SetsockoptIPMreqn(s.fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, request))
	}
	request := &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(ifi.Index)}
	return errors.Join(
		unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, ifi.Index),
		unix.SetsockoptIPv6Mreq(s.fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, request))
}

func (s *socket) maskWakeups(on bool) {
	s.masked.Store(on)
	s.wakeup.Mask(on)
	if !on && s.left.Load() {
		s.wakeup.Kick()
	}
}

// wait blocks until there is something to poll.
func (s *socket) wait(ctx context.Context) error {
	s.waits.Add(1)
	defer s.waits.Add(-1)
	if s.left.Load() && !s.masked.Load() {
		return nil
	}
	err := s.wakeup.Poller().Wait(ctx)
	s.woken.Store(true)
	return err
}

var _ transport.Sleeper = (*Link)(nil)

// Sleep implements transport.Sleeper.
func (l *Link) Sleep() error {
	s := l.socket
	switch {
	case l.closed.Load():
		return transport.ErrClosed
	case s.left.Load() && !s.masked.Load():
		return nil
	}
	err := s.wakeup.Sleep()
	s.woken.Store(true)
	return l.wrap("wait", err)
}

// Awake implements transport.Sleeper.
func (l *Link) Awake() { l.socket.wakeup.Awake() }

// Interrupt implements transport.Sleeper.
func (l *Link) Interrupt() { l.socket.wakeup.Interrupt() }

// polled says that a Poll is over. What it has left ends a wait that had looked before: the kernel
// has nothing any more that would.
func (s *socket) polled() {
	if s.left.Load() && s.waits.Load() > 0 && !s.masked.Load() {
		s.wakeup.Kick()
	}
}

// drops returns how many datagrams the kernel had no room for.
func (s *socket) drops() uint64 {
	s.rxMu.Lock()
	defer s.rxMu.Unlock()
	return s.lost + dropsOf(s.fd) + dropsOf(s.near.fd)
}

// dropsOf returns how many datagrams for a socket the kernel had no room for; none, if it is not
// open.
func dropsOf(fd int) uint64 {
	if fd < 0 {
		return 0
	}
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return 0
	}
	return uint64(info[8]) // SK_MEMINFO_DROPS
}

// close closes the socket. No send is under way, and none follows.
func (s *socket) close() error {
	s.stamping.Close(s.fd)
	if s.wakeup != nil {
		s.wakeup.Poller().Close()
		s.wakeup.Close()
	}
	s.rxMu.Lock()
	defer s.rxMu.Unlock()
	fd := s.fd
	s.lost += dropsOf(fd)
	s.closeBeside()
	s.scout.close()
	s.fd = -1
	return unix.Close(fd)
}
