package afpacket

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Batch is how many frames one system call sends or receives. At 32 the call's own cost is 1/20 of what the frames
// cost; more would keep the processor from other goroutines for longer than about 40 µs.
const Batch = 32

// Outbox turns frames into bytes, and gives them to the kernel: one by send(2), several by sendmmsg(2).
// It is not safe for concurrent use.
type Outbox struct {
	src  transport.MAC
	bufs [Batch][]byte
	vec  [Batch]unix.Iovec
	msgs [Batch]unix.Mmsghdr
}

// NewOutbox makes an outbox for frames from src with payloads of up to mtu bytes.
func NewOutbox(src transport.MAC, mtu int) *Outbox {
	o := &Outbox{src: src}
	size := max(mtu+transport.MaxHeaderLen, transport.MinFrameLen)
	memory := make([]byte, Batch*size)
	for i := range o.bufs {
		o.bufs[i] = memory[i*size : (i+1)*size]
		o.vec[i].Base = &o.bufs[i][0]
		o.msgs[i].Hdr.Iov = &o.vec[i]
		o.msgs[i].Hdr.SetIovlen(1)
	}
	return o
}

// Put makes f, which must have been checked, the i-th frame to send. Short frames are padded with zeros, as NICs do
// and veth does not: the kernel drops a tagged frame with fewer than two bytes behind the tag.
func (o *Outbox) Put(i int, f *transport.Frame) {
	b := o.bufs[i]
	n := f.PutHeader(b)
	if f.Src.IsZero() {
		copy(b[6:12], o.src[:])
	}
	n += copy(b[n:], f.Payload)
	if n < transport.MinFrameLen {
		clear(b[n:transport.MinFrameLen])
		n = transport.MinFrameLen
	}
	o.vec[i].SetLen(n)
}

// Send gives the first n frames to the socket and returns how many it took. It does not block, and so does
// without telling the scheduler.
func (o *Outbox) Send(fd uintptr, n int) (int, error) {
	if n == 1 {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(o.vec[0].Base)), uintptr(o.vec[0].Len), unix.MSG_DONTWAIT, 0, 0)
		if e != 0 {
			return 0, Refusal(e)
		}
		return 1, nil
	}
	sent, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.msgs[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, Refusal(e)
	}
	if int(sent) < n {
		return int(sent), transport.ErrBusy // the kernel keeps the reason to itself; the next try will tell
	}
	return n, nil
}

// Refusal names the reason for which the kernel does not take a frame. The usual one costs nothing.
func Refusal(e unix.Errno) error {
	switch e {
	case unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
		return transport.ErrBusy
	case unix.EBADF:
		return transport.ErrClosed
	}
	return Explain(e)
}
