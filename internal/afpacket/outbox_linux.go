package afpacket

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// Batch is how many frames one system call sends or receives: twice as many as take the call's own cost to 1/20 of the frames', since what
// lies between two calls has to come back into the processor's cache as well. A call of a full batch keeps the processor from other
// goroutines for about 100 µs.
const Batch = 64

// Outbox turns frames into bytes, and gives them to the kernel: one by send(2), several by sendmmsg(2). It may be
// used from any goroutine.
//
// It sends by a socket of its own, which receives nothing. A socket that anybody watches for received frames, asleep
// or not, costs 0.1 µs for each frame that it has sent, when the kernel tells the watcher of the room.
type Outbox struct {
	src   transport.MAC
	mtu   int
	index int // of the interface

	mu   sync.Mutex // guards what follows; the counters are read without it
	fd   int        // closed: -1
	bufs [Batch][]byte
	vec  [Batch]unix.Iovec
	msgs [Batch]unix.Mmsghdr

	frames, bytes, refused, busy atomic.Uint64
}

// Open makes o ready for frames from src with payloads of up to mtu bytes, by the interface with the given index. With
// bypass they go past its queueing discipline.
func (o *Outbox) Open(index int, src transport.MAC, mtu int, bypass bool) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return Explain(err)
	}
	option := 0
	if bypass {
		option = 1
	}
	err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, option)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}) // protocol 0: nothing is received
	}
	if err != nil {
		_ = unix.Close(fd) // the first error is the one to report
		return fmt.Errorf("open the sending socket: %w", Explain(err))
	}
	o.fd, o.src, o.mtu, o.index = fd, src, mtu, index
	size := max(mtu+transport.MaxHeaderLen, transport.MinFrameLen)
	memory := make([]byte, Batch*size)
	for i := range o.bufs {
		o.bufs[i] = memory[i*size : (i+1)*size]
		o.msgs[i].Hdr.Iov = &o.vec[i]
		o.msgs[i].Hdr.SetIovlen(1)
	}
	return nil
}

// Close makes later Sends return transport.ErrClosed. Further calls do nothing, nor does one without Open.
func (o *Outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bufs[0] == nil || o.fd < 0 {
		return nil
	}
	fd := o.fd
	o.fd = -1
	return unix.Close(fd)
}

// Send sends frames in order, a batch per system call, and returns how many the kernel took. ErrBusy comes as it
// is; other errors want the link's name.
func (o *Outbox) Send(frames []transport.Frame) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fd < 0 {
		return 0, transport.ErrClosed
	}
	sent := 0
	for sent < len(frames) {
		n, err := o.fill(frames[sent:])
		taken := 0
		if n > 0 {
			var refusal error
			if taken, refusal = o.give(n); refusal != nil {
				err = refusal
			}
		}
		size := 0
		for i := range frames[sent : sent+taken] {
			size += frames[sent+i].WireLen()
		}
		add(&o.bytes, size)
		add(&o.frames, taken)
		sent += taken
		if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
			add(&o.busy, 1)
			return sent, err
		}
		if err != nil {
			add(&o.refused, 1)
			return sent, err
		}
	}
	return sent, nil
}

// add is an addition that only one goroutine does at a time: a plain store costs 1 ns, an atomic addition 5.
func add(c *atomic.Uint64, n int) { c.Store(c.Load() + uint64(n)) }

// fill puts as many frames into the outbox as fit, up to the first one that cannot be sent at all.
func (o *Outbox) fill(frames []transport.Frame) (int, error) {
	frames = frames[:min(len(frames), Batch)]
	for i := range frames {
		if err := transport.CheckFrame(&frames[i], o.mtu); err != nil {
			return i, err
		}
		o.put(i, &frames[i])
	}
	return len(frames), nil
}

// put makes f the i-th frame to send: where it is, if it has room for a header, or else copied. Short frames are padded with
// zeros, as NICs do and veth does not: the kernel drops a tagged frame with fewer than two bytes behind the tag.
func (o *Outbox) put(i int, f *transport.Frame) {
	var b []byte
	ok := false
	if len(f.Payload) >= transport.MinFrameLen {
		b, ok = f.PutHeaderInPlace()
	}
	if !ok {
		b = o.bufs[i]
		n := f.PutHeader(b)
		n += copy(b[n:], f.Payload)
		if n < transport.MinFrameLen {
			clear(b[n:transport.MinFrameLen])
			n = transport.MinFrameLen
		}
		b = b[:n]
	}
	if f.Src.IsZero() {
		copy(b[6:12], o.src[:])
	}
	o.vec[i].Base = &b[0]
	o.vec[i].SetLen(len(b))
}

// give gives the first n frames to the socket and returns how many it took. It does not block, and so does
// without telling the scheduler.
//
// A kernel that bypasses the queueing discipline has one answer, ENOBUFS, for a full queue and for no carrier. Without a
// carrier there will be no room either: the frames are lost, as on any cable that is unplugged.
func (o *Outbox) give(n int) (int, error) {
	fd := uintptr(o.fd)
	if n == 1 {
		_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(o.vec[0].Base)), uintptr(o.vec[0].Len), unix.MSG_DONTWAIT, 0, 0)
		if e != 0 {
			return o.refuse(n, e)
		}
		return 1, nil
	}
	sent, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.msgs[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return o.refuse(n, e)
	}
	if int(sent) < n {
		return int(sent), transport.ErrBusy // the kernel keeps the reason to itself; the next try will tell
	}
	return n, nil
}

// refuse names the reason for which the kernel took none of n frames. Lost ones count as taken.
func (o *Outbox) refuse(n int, e unix.Errno) (int, error) {
	switch e {
	case unix.ENOBUFS:
		if !hasCarrier(o.fd, o.index) { // 1 µs, for which a full queue is no worse
			return n, nil
		}
		return 0, transport.ErrBusy
	case unix.EAGAIN, unix.EINTR:
		return 0, transport.ErrBusy
	}
	return 0, Explain(e)
}

// Count adds what was sent to a link's counters.
func (o *Outbox) Count(c *transport.Counters) {
	c.TxFrames, c.TxBytes, c.TxRefused, c.TxBusy = o.frames.Load(), o.bytes.Load(), o.refused.Load(), o.busy.Load()
}
