package packet

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

// auxSpace is the room for one control message with a TpacketAuxdata, in bytes.
var auxSpace = unix.CmsgSpace(int(unsafe.Sizeof(unix.TpacketAuxdata{})))

// controlSpace is that and the room for a stamp.
var controlSpace = auxSpace + timestamping.Space

// inbox receives frames in batches, by recvmmsg(2), into memory of its own.
type inbox struct {
	poller *netpoll.Poller
	trains bool
	before int // bytes before a frame in its buffer
	bufs   [afpacket.Batch][]byte
	aux    [afpacket.Batch][]byte
	vec    [afpacket.Batch]unix.Iovec
	msgs   [afpacket.Batch]unix.Mmsghdr

	// recv is the method receive, bound once: RawConn.Control then does not allocate. Its argument
	// is want, its results are got and err.
	recv func(fd uintptr)
	want int
	got  int
	at   int            // of these, handed out
	left afpacket.Train // of the last one of those
	err  unix.Errno
}

func (in *inbox) init(mtu int) {
	size := max(mtu+transport.MaxHeaderLen, transport.MinFrameLen)
	if in.trains {
		in.before, size = afpacket.VirtioLen, trainBuffer
	}
	memory := make([]byte, afpacket.Batch*(size+controlSpace))
	for i := range in.msgs {
		in.bufs[i], memory = memory[:size:size], memory[size:]
	}
	for i := range in.msgs {
		in.aux[i], memory = memory[:controlSpace:controlSpace], memory[controlSpace:]
		in.vec[i].Base = &in.bufs[i][0]
		in.vec[i].SetLen(size)
		h := &in.msgs[i].Hdr
		h.Iov = &in.vec[i]
		h.SetIovlen(1)
		h.Control = &in.aux[i][0]
	}
	in.recv = in.receive
}

// receive takes up to want frames. The call does not block, so the Go scheduler need not know.
func (in *inbox) receive(fd uintptr) {
	for i := range in.want {
		in.msgs[i].Hdr.SetControllen(controlSpace)
	}
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&in.msgs[0])), uintptr(in.want),
		unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	in.got, in.err = int(n), e
	if e != 0 {
		in.got = 0
	}
}

// look reports whether there is a frame, or an error, without taking the frame. It calls ppoll(2),
// as some processors have no poll(2).
func (in *inbox) look(fd uintptr) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	var noWait unix.Timespec
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1,
		uintptr(unsafe.Pointer(&noWait)), 0, 0, 0)
	if n != 1 {
		return false
	}
	if fds[0].Revents&unix.POLLERR != 0 {
		in.poller.FailWithSocketError(int(fd))
	}
	return true
}

// received returns the i-th frame of the last receive. With MSG_TRUNC its length is what it was
// before it was cut to fit the buffer.
func (in *inbox) received(i int) afpacket.Received {
	n := int(in.msgs[i].Len)
	stored := max(min(n, len(in.bufs[i])), in.before)
	r := afpacket.Received{Bytes: in.bufs[i][in.before:stored:stored], Len: n - in.before}
	if aux := auxdata(in.control(i)); aux != nil {
		r.Status, r.TCI = aux.Status, aux.Vlan_tci
	}
	return r
}

// control returns the control messages of the i-th frame.
func (in *inbox) control(i int) []byte { return in.aux[i][:in.msgs[i].Hdr.Controllen] }

// auxdata returns the frame's metadata from its control messages: the last of them. A stamp is
// before it.
func auxdata(control []byte) *unix.TpacketAuxdata {
	if len(control) < auxSpace {
		return nil
	}
	control = control[len(control)-auxSpace:]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA {
		return nil
	}
	return (*unix.TpacketAuxdata)(unsafe.Pointer(&control[unix.CmsgLen(0)]))
}

// trainBuffer is the length of a buffer for a train: the longest packet, with all headers. It keeps
// the first lines of buffers apart in the processor's cache.
const trainBuffer = 1<<16 + 17*64

// take hands out what was received.
func (l *Link) take(frames []transport.Frame) (n int) {
	in := &l.socket.in
	for n < len(frames) {
		if in.trains {
			n += in.left.Next(frames[n:])
			if n == len(frames) {
				break
			}
		}
		if in.at == in.got {
			break
		}
		i := in.at
		in.at++
		r := in.received(i)
		if in.trains {
			virtio := in.bufs[i][:afpacket.VirtioLen]
			if _, isTrain := afpacket.ReceivedTrain(&l.attachment, r, virtio, &in.left); isTrain {
				continue
			}
		}
		if afpacket.Accept(&l.attachment, r, &frames[n]) {
			if n++; len(in.control(i)) > auxSpace {
				l.stamps = append(l.stamps, make([]transport.Stamp, n-1-len(l.stamps))...) // of trains
				l.stamps = append(l.stamps, timestamping.Received(in.control(i)))
			}
		}
	}
	if in.trains {
		afpacket.SetPending(&l.attachment, in.left.Left() || in.at < in.got, in.poller.Kick)
	}
	afpacket.CountReceived(&l.attachment, frames[:n])
	return n
}

// ReceivedStamp implements transport.Stamper. Frames of trains have none.
func (l *Link) ReceivedStamp(i int) transport.Stamp {
	if i >= len(l.stamps) {
		return transport.Stamp{}
	}
	return l.stamps[i]
}

// Poll implements transport.Link. It makes one recvmmsg(2), for up to afpacket.Batch frames: a
// second one would overwrite the first one's frames.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	in := &l.socket.in
	l.stamps = l.stamps[:0]
	if afpacket.Closed(&l.attachment) {
		return 0, transport.ErrClosed
	}
	if n := l.take(frames); n > 0 { // what is left of the last call
		return n, nil
	}
	if in.want = min(len(frames), afpacket.Batch); in.want == 0 {
		return 0, nil
	}
	if l.socket.raw.Control(in.recv) != nil {
		return 0, transport.ErrClosed
	}
	in.at = 0
	n := l.take(frames)
	switch in.err {
	case 0, unix.EAGAIN, unix.EINTR:
		return n, nil
	}
	return n, afpacket.LinkError(&l.attachment, "poll", in.err)
}
