//go:build linux && !rawlane_portable

package udp

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/clock"
)

// connection is a second socket on the link's port, connected to the station that datagrams have
// gone to for a while. The kernel knows the way to it, and of what comes from it the socket, and
// looks up neither for each datagram: half of a round trip takes 0.89 times as long over a veth.
//
// It is a way of sending and receiving the same datagrams, no other service: whatever the kernel
// refuses to send by it goes by the link's own socket, which also has what comes from all others.
type connection struct {
	fd       int           // -1: the system makes none. It is opened with the link, in its network namespace
	to       address       // of the station; the link's own, when there is none
	peer     address       // that the last datagrams went to
	streak   int           // how many did
	wanted   int           // how long a streak makes a connection
	unwanted atomic.Bool   // others' datagrams crowd it out
	device   string        // that the link's own socket is bound to, if any
	placed   bool          // it was connected before
	source   netip.Addr    // that it sends from
	looked   time.Duration // when the link looked last whether that is still the one

	bound, up bool // to the link's port, and watched; connected to a station. Changed under rxMu, too
}

// Bounds of a connection. One that others' datagrams crowd out costs a look at a second socket, and
// ends; the next takes a longer streak.
const (
	firstStreak   = 64
	longestStreak = 1 << 20
	crowdedOf     = 256 // datagrams, of which
	crowdedFrom   = 64  // others' make it unwanted
)

// lookAgain is how long a connection of a link that is bound to no address keeps the one that it
// sends from, at most, when the host's routes prefer another.
const lookAgain = time.Second

// otherLooks is of how many looks one is at the other socket than the one that had something last,
// too.
const otherLooks = 4

// openBeside makes the socket beside the link's own, whose settings it has.
func (s *socket) openBeside(ifname string, receiveBuffer int) {
	c := &s.near
	c.wanted, c.device = firstStreak, ifname
	fd, err := unix.Socket(s.family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if c.fd = fd; err != nil {
		return
	}
	beside := socket{fd: fd, family: s.family}
	beside.setBuffer(unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, receiveBuffer)
	beside.setBuffer(unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, sendBuffer)
	beside.fragment(false)
	err = beside.hearNoGroups()
	if ifname != "" && err == nil {
		err = unix.BindToDevice(fd, ifname)
	}
	if err != nil {
		s.closeBeside()
	}
}

// closeBeside closes the connection for good. The caller holds rxMu.
func (s *socket) closeBeside() {
	if s.near.fd >= 0 {
		s.wakeup.Unwatch(s.near.fd)
		s.lost += dropsOf(s.near.fd)
		_ = unix.Close(s.near.fd) // the link's own does all that it did
		s.near.fd, s.near.bound, s.near.up = -1, false, false
	}
}

// route returns the socket that sends the messages of out: the connection, if all are for its
// station. It makes one behind a streak. The caller holds the lock of sends.
func (s *socket) route() (fd int) {
	c, o := &s.near, &s.out
	to, same := o.to[0], true
	for _, other := range o.to[1:o.messages] {
		same = same && other == to
	}
	if c.unwanted.Load() || c.up && s.strays() {
		s.disconnect()
	}
	switch {
	case !same:
		c.streak = 0
		return s.fd
	case *to != c.peer:
		c.peer, c.streak = *to, 0
	}
	for _, datagrams := range o.cars[:o.messages] {
		c.streak += datagrams
	}
	if c.up && c.to == *to || c.streak >= c.wanted && s.connect(to) {
		return c.fd
	}
	return s.fd
}

// connect makes the connection one to a station, which a group is not. The link's own socket says
// what is wrong where there is no way to it. The caller holds the lock of sends.
func (s *socket) connect(to *address) bool {
	c := &s.near
	c.streak = 0
	if c.fd < 0 || s.in.stamped.Load() || to.addrPort().Addr().IsMulticast() {
		return false
	}
	c.wanted = min(2*c.wanted, longestStreak)
	s.rxMu.Lock()
	defer s.rxMu.Unlock()
	usable := c.bound || s.share() == nil && s.wakeup.Watch(c.fd) == nil
	connected := usable && c.connect(to)
	if c.bound = usable; !connected {
		if !c.up { // unconnected, it would have what comes from others
			s.closeBeside()
		}
		return false
	}
	c.up = true
	if s.in.joins {
		joinTrains(c.fd)
	}
	return true
}

// share binds the connection to what the link's own socket is bound to. That may be shared for as
// long as this takes, and no longer: another program that wants the port is still refused.
func (s *socket) share() error {
	at, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	both := func(share int) (err error) {
		for _, fd := range []int{s.near.fd, s.fd} {
			err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, share))
		}
		return err
	}
	if err = both(1); err == nil {
		err = unix.Bind(s.near.fd, at)
	}
	return errors.Join(err, both(0))
}

// connect connects the socket to a station, by the address and interface by which the way leads
// now.
func (c *connection) connect(to *address) bool {
	if c.placed {
		if c.up = false; !disconnected(c.fd, c.device) {
			return false
		}
	}
	c.placed = true
	if connectTo(c.fd, to) != 0 {
		return false
	}
	c.to, c.source, c.looked = *to, sourceOf(c.fd), clock.Now().Since()
	return true
}

// strays reports whether the host would send to the connection's station from another address than
// the connection does, which keeps its own: also while the interface that has it is down. A link
// that is bound to an address has no other.
func (s *socket) strays() bool {
	c := &s.near
	if s.scout.fd < 0 {
		return false
	}
	now := clock.Now().Since()
	if now-c.looked < lookAgain {
		return false
	}
	c.looked = now
	from := s.source(&c.to)
	return from.IsValid() && from != c.source
}

// disconnect ends the connection: it becomes one to the link itself, which sends itself nothing.
// (Without any, the socket would have what others send.) The caller holds the lock of sends.
func (s *socket) disconnect() {
	c := &s.near
	c.unwanted.Store(false)
	if !c.up {
		return
	}
	c.streak = 0
	own, err := unix.Getsockname(c.fd)
	parked := err == nil && unix.Connect(c.fd, own) == nil
	c.to = address{}
	s.rxMu.Lock()
	defer s.rxMu.Unlock()
	if c.up, s.in.near = false, false; !parked {
		s.closeBeside()
	}
}

// hearNoGroups has the socket receive nothing of the groups that others have joined, which would
// come twice between its binding and its connection.
func (s *socket) hearNoGroups() error {
	if s.family == unix.AF_INET {
		return unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
	}
	return unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
}

// look receives what is there, first of all by the socket that had something last. Something may be
// left in the other one when the connection is over, too. The caller holds rxMu.
func (s *socket) look() (n int, e unix.Errno) {
	in := &s.in
	if !s.near.bound {
		return in.call(s.fd)
	}
	in.looks++
	both, first := in.looks >= otherLooks || s.woken.Load(), in.near
	if both { // the other first, which one that always has something would hide
		in.looks, first = 0, !first
		s.woken.Store(false)
	}
	if n, e = s.lookAt(first); e != 0 && both {
		first = !first
		if n, other := s.lookAt(first); other == 0 || e == unix.EAGAIN {
			in.near = first
			return n, other
		}
	}
	in.near = first
	return n, e
}

// lookAt receives by the connection, whose errors are its station's and no news of the link, or by
// the link's own socket.
func (s *socket) lookAt(near bool) (n int, e unix.Errno) {
	in := &s.in
	if near {
		if n, e = in.call(s.near.fd); e != 0 {
			return n, unix.EAGAIN
		}
		in.fromNear += n
	} else {
		if n, e = in.call(s.fd); e != 0 {
			return n, e
		}
		in.fromOthers += n
	}
	if in.fromNear+in.fromOthers >= crowdedOf {
		if in.fromOthers >= crowdedFrom && s.near.up {
			s.near.unwanted.Store(true)
		}
		in.fromNear, in.fromOthers = 0, 0
	}
	return n, 0
}
