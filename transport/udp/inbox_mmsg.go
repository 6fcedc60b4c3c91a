//go:build linux && !rawlane_portable

package udp

import (
	"net/netip"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

// Sizes of the inbox. A message may be a train, of 64 KiB. The stride keeps the first lines of the
// buffers apart in the processor's cache, and a call receives no more trains than that cache holds
// until their datagrams are read.
const (
	inboxLen     = 32
	inboxTrains  = 4
	bufferLen    = 65536
	bufferStride = bufferLen + 17*64
)

// streamLen is how many messages that came at once show that trains are worth their joining.
const streamLen = 16

// trainCut is the room for a control message that says where a received train is cut, and
// controlSpace is that and the room for a stamp.
var (
	trainCut     = unix.CmsgSpace(4)
	controlSpace = trainCut + timestamping.Space
)

// inbox receives messages, by recvmmsg(2), and hands out their datagrams.
type inbox struct {
	bufs    [inboxLen][]byte
	control [inboxLen][]byte
	names   [inboxLen]address
	vec     [inboxLen]unix.Iovec
	msgs    [inboxLen]unix.Mmsghdr

	joins   bool            // the kernel hands out a train as one message
	joined  atomic.Uint64   // trains handed out so
	stamped atomic.Bool     // the kernel stamps messages
	stamp   transport.Stamp // of message at
	handed  transport.Stamp // of the last datagram that was handed out
	trains  bool            // the last call brought some
	idle    bool            // the last call found nothing
	near    bool            // the connection had something last
	looks   int             // since the last one at both sockets

	fromNear, fromOthers int // messages of late, by the connection and by the link's own socket

	got, at int            // messages received, and handed out
	rest    []byte         // what is left of message at
	cut     int            // the length of its datagrams
	from    netip.AddrPort // its sender
}

func (in *inbox) init() {
	memory := make([]byte, inboxLen*(bufferStride+controlSpace))
	for i := range in.msgs {
		in.bufs[i] = memory[i*bufferStride:][:bufferLen:bufferLen]
		in.control[i] = memory[inboxLen*bufferStride+i*controlSpace:][:controlSpace:controlSpace]
		in.vec[i].Base = &in.bufs[i][0]
		in.vec[i].SetLen(bufferLen)
		h := &in.msgs[i].Hdr
		h.Iov = &in.vec[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&in.names[i].raw))
		h.Control = &in.control[i][0]
		in.reset(i)
	}
}

// reset makes a message ready to be received.
func (in *inbox) reset(i int) {
	h := &in.msgs[i].Hdr
	h.Namelen = unix.SizeofSockaddrInet6
	h.SetControllen(controlSpace)
}

// pending reports whether there are datagrams that no poll has taken.
func (s *socket) pending() bool { return s.left.Load() }

// receive takes what is there. The call does not block, so the Go scheduler need not know.
func (s *socket) receive() error {
	in := &s.in
	for i := range max(in.got, 1) { // the first also after a call that found nothing
		in.reset(i)
	}
	in.got, in.at, in.rest = 0, 0, nil
	s.rxMu.Lock()
	if s.fd < 0 {
		s.rxMu.Unlock()
		return unix.EBADF
	}
	n, e := s.look()
	if e == 0 && n >= streamLen && !in.joins {
		in.joins = true
		joinTrains(s.fd)
		if s.near.up {
			joinTrains(s.near.fd)
		}
	}
	s.rxMu.Unlock()
	switch e {
	case 0:
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED:
		return nil
	default:
		return e
	}
	in.got = n
	in.open()
	s.left.Store(true)
	return nil
}

// call receives what is there. After a call that found nothing it is for one message alone: the
// messages of a program that is awaited come one by one, and recvmmsg costs 0.1 µs more. So does a
// socket that joins trains: it is one from the first stream of messages on.
func (in *inbox) call(fd int) (n int, e unix.Errno) {
	if in.idle {
		e = in.receiveOne(uintptr(fd))
		in.idle = e != 0
		return 1, e
	}
	most := inboxLen
	if in.trains {
		most, in.trains = inboxTrains, false
	}
	got, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&in.msgs[0])),
		uintptr(most), unix.MSG_DONTWAIT, 0, 0)
	in.idle = e != 0
	return int(got), e
}

// joinTrains has a socket hand out a train as one message: Linux 5.0; before, they come singly.
func joinTrains(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) }

// receiveOne receives one message: without control messages, as long as it cannot be a train.
func (in *inbox) receiveOne(fd uintptr) (e unix.Errno) {
	m := &in.msgs[0]
	var size uintptr
	if in.joins || in.stamped.Load() {
		size, _, e = syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&m.Hdr)), unix.MSG_DONTWAIT)
	} else {
		m.Hdr.SetControllen(0)
		size, _, e = syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(in.vec[0].Base)), bufferLen,
			unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(m.Hdr.Name)), uintptr(unsafe.Pointer(&m.Hdr.Namelen)))
	}
	m.Len = uint32(size)
	return e
}

// open begins with message at.
func (in *inbox) open() {
	n := int(in.msgs[in.at].Len)
	in.rest = in.bufs[in.at][:n]
	in.cut = max(n, 1)
	in.from = in.names[in.at].addrPort()
	control := in.control[in.at][:in.msgs[in.at].Hdr.Controllen]
	if in.stamped.Load() {
		in.stamp = transport.Stamp{}
	}
	if len(control) >= timestamping.Space { // a stamp is before what says where a train is cut
		in.stamp = timestamping.Received(control)
		control = control[timestamping.Space:]
	}
	if len(control) >= trainCut {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		size := *(*int32)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && size > 0 {
			in.cut, in.trains = int(size), true
			in.joined.Add(1)
		}
	}
}

// next returns the next datagram, and who sent it. It is valid until the next receive.
func (s *socket) next() (b []byte, from netip.AddrPort, ok bool) {
	in := &s.in
	if !s.left.Load() {
		return nil, from, false
	}
	n := min(in.cut, len(in.rest))
	b, in.rest, from = in.rest[:n:n], in.rest[n:], in.from
	if in.stamped.Load() {
		in.handed = in.stamp
	}
	if len(in.rest) == 0 {
		if in.at++; in.at < in.got {
			in.open()
		} else {
			s.left.Store(false)
		}
	}
	return b, from, true
}
