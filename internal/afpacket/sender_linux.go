package afpacket

import (
	"errors"
	"math/bits"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/timestamping"
	"github.com/rawlane/rawlane/transport"
)

// Batch is how many frames one system call sends or receives at most. At 64 the call's own cost is
// 1/20 of the frames', what lies between two calls having to come back into the processor's cache;
// a full batch keeps the processor from other goroutines for about 100 µs.
const Batch = 64

// sender turns frames into bytes and gives them to the kernel: one by send(2), several by
// sendmmsg(2). It may be used from any goroutine.
//
// It has a socket of its own, which receives nothing and which nobody watches. For a socket in an
// epoll set, armed or not, the kernel spends 0.1 µs per sent frame to report the room in its
// buffer.
type sender struct {
	ifi *Interface

	mu sync.Mutex // guards what follows
	fd int        // -1 when closed

	bypass  bool    // frames go past the queueing discipline
	noQueue bool    // there is none
	trains  *trains // nil: none

	refusals int // for want of room, since the kernel last took a frame

	// Counters.
	frames, bytes, refused, busy uint64

	vec  [Batch]unix.Iovec
	bufs [Batch][]byte
	msgs [Batch]unix.Mmsghdr

	stamps timestamping.Queue
}

// carrierEvery is how many refusals pass between two looks for the carrier, which cost 1 µs each.
const carrierEvery = 32

// open prepares the sender for frames by the interface. With bypassQdisc they go past its
// queueing discipline, unless the NIC has several transmit queues: past the discipline the kernel
// chooses the queue by the processor that Send runs on, and frames of one sender could overtake
// each other.
func (s *sender) open(ifi *Interface, cfg Config) (err error) {
	var fd int
	if cfg.Granted == nil {
		fd, err = OpenSendSocket(ifi.Index)
	} else {
		fd, err = cfg.Granted.TakeSend()
	}
	s.bypass, s.noQueue = cfg.BypassQdisc && ifi.Driver.TxQueues == 1, ifi.Driver.NoQueue
	if err == nil && s.bypass {
		if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
			_ = unix.Close(fd) // the first error is the one to report
		}
	}
	if err == nil && cfg.Trains {
		if s.trains, err = openTrains(ifi, cfg.EtherType); err != nil {
			_ = unix.Close(fd) // likewise
		}
	}
	if err != nil {
		return Explain("open the sending socket", err)
	}
	s.fd, s.ifi = fd, ifi
	s.makeRoom()
	size := max(s.ifi.MTU+transport.MaxHeaderLen, transport.MinFrameLen)
	memory := make([]byte, Batch*size)
	for i := range s.bufs {
		s.bufs[i] = memory[i*size : (i+1)*size]
		s.msgs[i].Hdr.Iov = &s.vec[i]
		s.msgs[i].Hdr.SetIovlen(1)
	}
	return nil
}

// makeRoom lets two batches of the largest frames wait for the NIC: the system's default is 34
// frames of 9,000 bytes. Without CAP_NET_ADMIN it is net.core.wmem_max at most.
func (s *sender) makeRoom() {
	// The kernel doubles the number. A frame takes the next power of two, and its own header.
	want := Batch * (1<<bits.Len(uint(s.ifi.MTU+frameOverhead)) + frameOverhead)
	has, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err == nil && has < 2*want {
		setBuffer(s.fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, want)
	}
}

// frameOverhead is what the kernel keeps with a frame, in bytes.
const frameOverhead = 512

// OpenSendSocket makes a socket that sends by an interface and receives nothing.
func OpenSendSocket(index int) (int, error) {
	fd, err := OpenSocket()
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil { // protocol 0: nothing is received
		_ = unix.Close(fd) // the first error is the one to report
		return -1, err
	}
	return fd, nil
}

// OpenSocket makes a packet socket. It receives nothing before it is bound.
func OpenSocket() (int, error) {
	return unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// close makes later sends return transport.ErrClosed.
func (s *sender) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.fd
	s.fd = -1
	if fd < 0 {
		return nil
	}
	err := unix.Close(fd)
	if s.trains != nil {
		err = errors.Join(err, s.trains.close())
	}
	return err
}

// send sends frames in order, a batch per system call, and returns how many the kernel took.
// Errors: ErrBusy, ErrClosed, those of transport.CheckFrame, an errno.
func (s *sender) send(frames []transport.Frame) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return 0, transport.ErrClosed
	}
	sent := 0
	for sent < len(frames) {
		n, err := s.sendBatch(frames[sent:])
		sent += n
		if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
			s.busy++
			return sent, err
		}
		if err != nil {
			s.refused++
			return sent, err
		}
	}
	return sent, nil
}

// sendBatch sends up to a batch of frames and counts those that the kernel took.
func (s *sender) sendBatch(frames []transport.Frame) (taken int, err error) {
	if s.trains == nil || len(frames) == 1 && !s.trains.unordered || s.trains.off {
		taken, err = s.sendPlain(frames)
	} else if n, to := s.nextTrain(frames); to != nil {
		taken, err = s.sendTrain(frames[:n], to)
	} else {
		taken, err = s.sendPlain(frames[:n])
	}
	if taken > 0 {
		s.refusals = 0
	}
	size := 0
	for i := range frames[:taken] {
		size += frames[i].WireLen()
	}
	s.bytes += uint64(size)
	s.frames += uint64(taken)
	return taken, err
}

// sendPlain sends up to a batch of frames, each as a packet.
func (s *sender) sendPlain(frames []transport.Frame) (taken int, err error) {
	n, err := s.fill(frames)
	if n > 0 {
		var refusal error
		if taken, refusal = s.give(n); refusal != nil {
			err = refusal
		}
		for i := range s.vec[:n] {
			s.vec[i].Base = nil // keeps no payload of the caller's alive
		}
	}
	return taken, err
}

// fill prepares a batch of frames, up to the first one that cannot be sent at all.
func (s *sender) fill(frames []transport.Frame) (int, error) {
	frames = frames[:min(len(frames), Batch)]
	for i := range frames {
		if err := transport.CheckFrame(&frames[i], s.ifi.MTU); err != nil {
			return i, err
		}
		s.put(i, &frames[i])
	}
	return len(frames), nil
}

// put makes f the i-th frame to send: in place if there is headroom for its header, else copied.
// Short frames are padded with zeros, as NICs do and veth does not: the kernel drops a tagged frame
// with fewer than two bytes behind the tag.
func (s *sender) put(i int, f *transport.Frame) {
	var b []byte
	inPlace := false
	if len(f.Payload) >= transport.MinFrameLen {
		b, inPlace = f.PutHeaderInPlace()
	}
	if !inPlace {
		b = s.bufs[i]
		n := f.PutHeader(b)
		n += copy(b[n:], f.Payload)
		if n < transport.MinFrameLen {
			clear(b[n:transport.MinFrameLen])
			n = transport.MinFrameLen
		}
		b = b[:n]
	}
	if f.Src.IsZero() {
		copy(b[6:12], s.ifi.MAC[:])
	}
	s.vec[i].Base = &b[0]
	s.vec[i].SetLen(len(b))
}

// give hands the first n frames to the socket and returns how many it took. The call does not
// block, so the Go scheduler need not know of it.
func (s *sender) give(n int) (int, error) {
	fd := uintptr(s.fd)
	if n == 1 {
		v := &s.vec[0]
		_, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(v.Base)), uintptr(v.Len),
			unix.MSG_DONTWAIT, 0, 0)
		if e != 0 {
			return s.refuse(n, e)
		}
		return 1, nil
	}
	sent, _, e := syscall.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.msgs[0])), uintptr(n),
		unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return s.refuse(n, e)
	}
	if int(sent) < n {
		return int(sent), transport.ErrBusy // the kernel does not say why; the next send will be told
	}
	return n, nil
}

// refuse says why the kernel took none of n frames.
//
// Past the queueing discipline the kernel answers ENOBUFS both for a full queue and for no carrier,
// and EAGAIN where a NIC keeps the frames that it could not send. Without a carrier there will be
// no room later either, so the frames count as taken and are lost, as on an unplugged cable.
func (s *sender) refuse(n int, e unix.Errno) (int, error) {
	switch e {
	case unix.ENOBUFS, unix.EAGAIN:
		s.refusals++
		if s.refusals%carrierEvery == 1 && !hasCarrier(s.fd, s.ifi.Index) {
			s.refusals = 0
			return n, nil
		}
		return 0, transport.ErrBusy
	case unix.EINTR:
		return 0, transport.ErrBusy
	}
	return 0, e
}

// count fills in the Tx half of a link's counters.
func (s *sender) count(c *transport.Counters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.TxFrames, c.TxBytes, c.TxRefused, c.TxBusy = s.frames, s.bytes, s.refused, s.busy
}
