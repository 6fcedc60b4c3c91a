package packet

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// auxSpace is the room for one control message with a TpacketAuxdata, in bytes.
var auxSpace = unix.CmsgSpace(int(unsafe.Sizeof(unix.TpacketAuxdata{})))

// inbox receives frames in batches, by recvmmsg(2), into memory of its own.
type inbox struct {
	link *Link
	all  bool // groups that were not joined, too
	bufs [afpacket.Batch][]byte
	aux  [afpacket.Batch][]byte
	vec  [afpacket.Batch]unix.Iovec
	msgs [afpacket.Batch]unix.Mmsghdr

	// recv is the system call, made once so that RawConn.Control need not allocate; want, got and err are its
	// argument and results.
	recv  func(fd uintptr)
	want  int
	got   int
	err   unix.Errno
	ready func(fd uintptr) bool

	failure                  atomic.Int32 // the socket's error, taken by ready
	frames, bytes, malformed atomic.Uint64
}

func (in *inbox) init(l *Link, all bool) {
	in.link, in.all = l, all
	size := max(l.mtu+transport.MaxHeaderLen, transport.MinFrameLen)
	memory := make([]byte, afpacket.Batch*(size+auxSpace))
	for i := range in.msgs {
		in.bufs[i], memory = memory[:size:size], memory[size:]
	}
	for i := range in.msgs {
		in.aux[i], memory = memory[:auxSpace:auxSpace], memory[auxSpace:]
		in.vec[i].Base = &in.bufs[i][0]
		in.vec[i].SetLen(size)
		h := &in.msgs[i].Hdr
		h.Iov = &in.vec[i]
		h.SetIovlen(1)
		h.Control = &in.aux[i][0]
	}
	in.recv = in.receive
	in.ready = in.look
}

// receive takes up to want frames. It does not block, and so does without telling the scheduler.
func (in *inbox) receive(fd uintptr) {
	for i := range in.want {
		in.msgs[i].Hdr.SetControllen(auxSpace)
	}
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&in.msgs[0])), uintptr(in.want),
		unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	in.got, in.err = int(n), e
	if e != 0 {
		in.got = 0
	}
}

// look reports whether there is a frame, or an error, without taking the frame.
func (in *inbox) look(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	var now unix.Timespec // the time that it may take; poll(2) is not there on all processors
	n, _, _ := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	if n != 1 {
		return false
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		if e, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil {
			in.failure.Store(int32(e))
		}
	}
	return true
}

func (in *inbox) takeFailure() error {
	if e := unix.Errno(in.failure.Swap(0)); e != 0 {
		return in.link.presence.Explain(e)
	}
	return nil
}

// Poll implements transport.Link. It costs one recvmmsg(2) per afpacket.Batch frames.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	in := &l.in
	n := 0
	// One call only: a second would write over the first one's frames.
	if in.want = min(len(frames), afpacket.Batch); in.want == 0 {
		return 0, nil
	}
	if l.closed.Load() || l.raw.Control(in.recv) != nil {
		return 0, transport.ErrClosed
	}
	for i := range in.got {
		if !in.parse(i, &frames[n]) {
			continue
		}
		in.frames.Store(in.frames.Load() + 1)
		in.bytes.Store(in.bytes.Load() + uint64(frames[n].WireLen()))
		n++
	}
	switch in.err {
	case 0, unix.EAGAIN, unix.EINTR:
		return n, nil
	}
	return n, l.wrap("poll", l.presence.Explain(in.err))
}

// parse reads the i-th received frame. It returns false if the frame is not wanted, or malformed.
func (in *inbox) parse(i int, f *transport.Frame) bool {
	length := int(in.msgs[i].Len) // with MSG_TRUNC, what the frame had before it was cut off
	if length < transport.HeaderLen || length > len(in.bufs[i]) {
		in.malformed.Store(in.malformed.Load() + 1)
		return false
	}
	b := in.bufs[i][:length:length]
	f.Dst = transport.MAC(b[0:6])
	f.Src = transport.MAC(b[6:12])
	f.EtherType = transport.EtherType(binary.BigEndian.Uint16(b[12:]))
	f.Payload = b[transport.HeaderLen:]
	f.Tag, f.Tagged = tagOf(in.aux[i][:in.msgs[i].Hdr.Controllen])
	return !f.Dst.IsMulticast() || in.all || in.link.groups.Has(f.Dst)
}

// tagOf reads the tag that the kernel took off a frame from the auxiliary data.
func tagOf(control []byte) (tag transport.Tag, tagged bool) {
	if len(control) < auxSpace {
		return transport.Tag{}, false
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return transport.Tag{}, false
	}
	aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
	if aux.Status&unix.TP_STATUS_VLAN_VALID == 0 { // not the tag's value: a tag of zeros is a tag
		return transport.Tag{}, false
	}
	return transport.TagFromTCI(aux.Vlan_tci), true
}

func (in *inbox) count(c *transport.Counters) {
	c.RxFrames, c.RxBytes, c.RxMalformed = in.frames.Load(), in.bytes.Load(), in.malformed.Load()
}
