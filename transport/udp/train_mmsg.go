//go:build linux && !rawlane_portable

package udp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Bounds of a train: what every kernel since Linux 4.18 takes.
const (
	trainLen   = 64
	trainBytes = 65000
)

// maxAlone bounds the ways that are known to refuse trains: strangers may choose where they are.
// Past it each is found out anew, by a train.
const maxAlone = 4096

// couplings are the messages of one sendmmsg(2), each a datagram or a train of them.
type couplings struct {
	// alone has the addresses on the way to which trains are refused: by a NIC that computes no
	// checksums, or as IPsec goes first (EIO). Other ways may take them.
	alone map[address]struct{}

	msgs [batch]unix.Mmsghdr
	cars [batch]int      // datagrams of msgs
	to   [batch]*address // of msgs
	size [batch]segmentSize
	vec  [2 * batch]unix.Iovec

	messages, used int // of msgs, and of vec
}

// segmentSize is the control message that says where a train is cut into datagrams.
type segmentSize struct {
	header unix.Cmsghdr
	bytes  uint16
	_      [6]byte
}

var _ transport.Trainer = (*Link)(nil)

// TrainMTU implements transport.Trainer: a datagram is no longer in a train than alone.
func (l *Link) TrainMTU() int { return l.mtu }

// TrainFrames implements transport.Trainer.
func (l *Link) TrainFrames() int {
	if n := min(trainLen, trainBytes/(transport.HeaderLen+l.mtu)); n > 1 {
		return n
	}
	return 0
}

// TrainHeadroom implements transport.Trainer: each datagram has a frame's header.
func (l *Link) TrainHeadroom() int { return transport.HeaderLen }

// Trains implements transport.Trainer.
func (l *Link) Trains() (sent, received uint64) {
	return l.socket.trains.Load(), l.socket.in.joined.Load()
}

// send sends datagrams in order and returns how many the system took. It errs with ErrBusy, or with
// an errno; then the next datagram was not taken. What the way to one station refuses is lost, as
// on an unplugged cable, and stops nothing that is for others. The caller holds the link's txMu.
func (s *socket) send(all []datagram) (n int, err error) {
	for n < len(all) {
		sent, errno := s.give(s.couple(all[n:]))
		for i := range sent {
			if n += s.out.cars[i]; s.out.cars[i] > 1 {
				s.trains.Add(1)
			}
		}
		refused := s.out.cars[sent%batch]
		switch {
		case errno == 0:
		case busy(errno):
			return n, transport.ErrBusy
		case noWay(errno) && (refused == 1 || errno != unix.EINVAL): // of a train, EINVAL may say that it is one
			n += refused
		default:
			if refused == 1 && errno != unix.EMSGSIZE {
				return n, errno
			}
			sent, err := s.singly(all[n : n+refused])
			if n += sent; err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// busy reports whether the system has no room now.
func busy(e unix.Errno) bool { return e == unix.EAGAIN || e == unix.ENOBUFS || e == unix.EINTR }

// noWay reports whether an errno speaks of the way to one station: no route, a firewall, a route
// that is prohibited (EACCES) or a black hole (EINVAL), a broadcast by IP (EACCES), port 0 or an
// address that is not to be reached from the link's (EINVAL). Strangers choose some of those.
func noWay(e unix.Errno) bool {
	switch e {
	case unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EHOSTDOWN, unix.EPERM, unix.EADDRNOTAVAIL,
		unix.EACCES, unix.EINVAL:
		return true
	}
	return false
}

// singly sends the datagrams of a message that was refused one by one. Those that are longer than
// what the path takes by now are sent in fragments. If all are taken as they are, it is trains that
// are refused on this way.
func (s *socket) singly(ds []datagram) (n int, err error) {
	long, lost := false, false
	for n < len(ds) {
		sent, errno := s.alone(ds[n : n+1])
		if errno == unix.EMSGSIZE {
			long = true
			s.fragment(true)
			sent, errno = s.alone(ds[n : n+1])
			s.fragment(false)
			s.fragmented.Add(uint64(sent))
		}
		switch {
		case errno == 0:
			n += sent
		case busy(errno):
			return n, transport.ErrBusy
		case noWay(errno):
			n, lost = n+1, true
		default:
			return n, errno
		}
	}
	if !long && !lost && len(ds) > 1 {
		s.out.refuses(ds[0].to)
	}
	return n, nil
}

// refuses notes that the way to an address refuses trains.
func (o *couplings) refuses(to *address) {
	if len(o.alone) >= maxAlone {
		clear(o.alone)
	}
	if o.alone == nil {
		o.alone = make(map[address]struct{})
	}
	o.alone[*to] = struct{}{}
}

// takesTrains reports whether the way to an address is not known to refuse them.
func (o *couplings) takesTrains(to *address) bool {
	_, alone := o.alone[*to]
	return !alone
}

// alone sends one datagram.
func (s *socket) alone(one []datagram) (int, unix.Errno) {
	s.out.messages, s.out.used = 0, 0
	s.out.put(one)
	return s.give(1)
}

// fragment says whether packets that are longer than the path's MTU are fragmented by this host, or
// refused. A socket of IPv6 may have stations of IPv4, too.
func (s *socket) fragment(on bool) {
	how4, how6 := unix.IP_PMTUDISC_DO, unix.IPV6_PMTUDISC_DO
	if on {
		how4, how6 = unix.IP_PMTUDISC_WANT, unix.IPV6_PMTUDISC_WANT
	}
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, how4)
	if s.family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, how6)
	}
}

// couple makes messages of datagrams, as many as there is room for, and returns how many messages.
func (s *socket) couple(all []datagram) int {
	o := &s.out
	o.messages, o.used = 0, 0
	for len(all) > 0 && o.messages < batch && o.used < len(o.vec) {
		n := 1
		if o.takesTrains(all[0].to) {
			n = train(all, len(o.vec)-o.used)
		}
		o.put(all[:n])
		all = all[n:]
	}
	return o.messages
}

// train returns how many of the first datagrams can leave as one.
func train(all []datagram, room int) int {
	first := &all[0]
	n, bytes := 1, len(first.b)
	for n < min(len(all), room, trainLen) {
		d := &all[n]
		if d.to != first.to || len(d.b) > len(first.b) || bytes+len(d.b) > trainBytes {
			break
		}
		n, bytes = n+1, bytes+len(d.b)
		if len(d.b) < len(first.b) { // the last
			break
		}
	}
	return n
}

// put makes the next message.
func (o *couplings) put(ds []datagram) {
	vec := o.gather(ds)
	o.cars[o.messages] = len(ds)
	o.to[o.messages] = ds[0].to
	h := &o.msgs[o.messages].Hdr
	h.Iov = &vec[0]
	h.SetIovlen(len(vec))
	h.Control = nil
	h.SetControllen(0)
	if len(ds) > 1 {
		c := &o.size[o.messages]
		c.header.Level, c.header.Type = unix.SOL_UDP, unix.UDP_SEGMENT
		c.header.SetLen(unix.CmsgLen(2))
		c.bytes = uint16(len(ds[0].b))
		h.Control = (*byte)(unsafe.Pointer(c))
		h.SetControllen(unix.CmsgSpace(2))
	}
	o.messages++
}

// gather has the next vectors hold datagrams: one for all that lie side by side. The kernel takes
// 25 ns for a vector.
func (o *couplings) gather(ds []datagram) []unix.Iovec {
	vec := o.vec[o.used:o.used]
	var end uintptr // of the last vector
	for i := range ds {
		b := ds[i].b
		at := uintptr(unsafe.Pointer(&b[0]))
		if at == end {
			last := &vec[len(vec)-1]
			last.SetLen(int(last.Len) + len(b))
		} else {
			vec = append(vec, unix.Iovec{Base: &b[0]})
			vec[len(vec)-1].SetLen(len(b))
		}
		end = at + uintptr(len(b))
	}
	o.used += len(vec)
	return vec
}

// give hands messages to the kernel and returns how many it took. What the connection does not take
// goes by the link's own socket, which says why; an error that waits for the connection's next call
// is of datagrams before.
func (s *socket) give(messages int) (n int, e unix.Errno) {
	defer func() { // keeps no payload of the caller's alive, and no station
		clear(s.out.vec[:s.out.used])
		clear(s.out.to[:s.out.messages])
	}()
	fd := s.route()
	s.out.name(fd == s.fd)
	n, e = s.giveBy(fd, messages)
	if fd == s.fd {
		return n, e
	}
	if e == unix.ECONNREFUSED {
		n, e = s.giveBy(fd, messages)
	}
	if e == 0 || busy(e) {
		return n, e
	}
	s.out.name(true)
	if n, e = s.giveBy(s.fd, messages); e == 0 {
		s.near.unwanted.Store(true)
	}
	return n, e
}

// name gives the messages their destinations' addresses, or none, for a connected socket.
func (o *couplings) name(on bool) {
	for i, to := range o.to[:o.messages] {
		h := &o.msgs[i].Hdr
		if h.Name, h.Namelen = nil, 0; on {
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&to.raw)), to.len
		}
	}
}

// giveBy hands messages to a socket. The call does not block, so the Go scheduler need not know of
// it.
func (s *socket) giveBy(fd, messages int) (int, unix.Errno) {
	o := &s.out
	if h := &o.msgs[0].Hdr; messages == 1 && h.Control == nil {
		_, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(h.Iov.Base)),
			uintptr(h.Iov.Len), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(h.Name)), uintptr(h.Namelen))
		if e != 0 {
			return 0, e
		}
		return 1, 0
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&o.msgs[0])),
		uintptr(messages), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}
