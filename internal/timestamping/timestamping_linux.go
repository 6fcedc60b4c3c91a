package timestamping

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// The stamps that are asked for. Those of sent frames come without the frames, and with their
// number; a frame has the driver's and, later, the NIC's.
const (
	software = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_TX_SOFTWARE |
		unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY
	hardware = unix.SOF_TIMESTAMPING_RAW_HARDWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE |
		unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_OPT_TX_SWHW
)

// Set has the kernel stamp what a socket sends and receives, or no longer, and counts what is sent
// from 0. Stamps that nobody has taken are gone: they would end each wait for the socket, and have
// the numbers of frames that are sent later.
func Set(fd int, on bool) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, 0); err != nil {
		return explain(err)
	}
	Forget(fd)
	if !on {
		return nil
	}
	return explain(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, software|hardware))
}

// Forget takes the stamps that nobody has taken. After Set(fd, false) there may be more of them:
// those of frames that were under way.
func Forget(fd int) {
	var q Queue
	for q.take(fd) {
	}
}

func explain(err error) error {
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: this kernel has no SO_TIMESTAMPING_NEW (Linux 5.1 has)",
			transport.ErrNotSupported)
	}
	return err
}

// stamps is struct scm_timestamping64: of the driver, of nothing any more, of the NIC.
type stamps [3]struct{ sec, nsec int64 }

// Space is the room for the control message of one stamp, in bytes.
var Space = unix.CmsgSpace(int(unsafe.Sizeof(stamps{})))

// Received returns the stamp among the control messages of what was received.
func Received(control []byte) (s transport.Stamp) {
	Each(control, func(h *unix.Cmsghdr, data []byte) {
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW {
			s = stampOf(data)
		}
	})
	return s
}

// Each calls f with each control message, and what is in it.
func Each(control []byte, f func(h *unix.Cmsghdr, data []byte)) {
	for len(control) >= unix.CmsgLen(0) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		n := int(h.Len)
		if n < unix.CmsgLen(0) || n > len(control) {
			return
		}
		f(h, control[unix.CmsgLen(0):n])
		control = control[min(unix.CmsgSpace(n-unix.CmsgLen(0)), len(control)):]
	}
}

func stampOf(data []byte) (s transport.Stamp) {
	if len(data) < int(unsafe.Sizeof(stamps{})) {
		return s
	}
	all := *(*stamps)(unsafe.Pointer(&data[0]))
	if t := all[0]; t.sec != 0 || t.nsec != 0 {
		s.Software = time.Unix(t.sec, t.nsec)
	}
	if t := all[2]; t.sec != 0 || t.nsec != 0 {
		s.Hardware = time.Unix(t.sec, t.nsec)
	}
	return s
}

// Queue is the error queue of a socket that sends. Only one goroutine may use it at a time.
type Queue struct {
	msg     unix.Msghdr
	control [256]byte
}

// Sent takes stamps of what the socket has sent, without waiting, and returns how many.
func (q *Queue) Sent(fd int, stamps []transport.SentStamp) (n int) {
	for n < len(stamps) && q.take(fd) {
		if s, ok := sent(q.control[:q.msg.Controllen]); ok {
			stamps[n] = s
			n++
		}
	}
	return n
}

// take takes what is first in the queue, and returns false if it is empty.
func (q *Queue) take(fd int) bool {
	q.msg = unix.Msghdr{Control: &q.control[0]}
	q.msg.SetControllen(len(q.control))
	_, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&q.msg)),
		unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	return e == 0
}

// sent reads the control messages of a stamp: the times, and which frame's.
func sent(control []byte) (s transport.SentStamp, ok bool) {
	Each(control, func(h *unix.Cmsghdr, data []byte) {
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW:
			s.Stamp = stampOf(data)
		case isError(h) && len(data) >= int(unsafe.Sizeof(unix.SockExtendedErr{})):
			e := *(*unix.SockExtendedErr)(unsafe.Pointer(&data[0]))
			ok = e.Origin == unix.SO_EE_ORIGIN_TIMESTAMPING && e.Info == unix.SCM_TSTAMP_SND
			s.Frame = e.Data
		}
	})
	return s, ok && s.Stamp != transport.Stamp{}
}

// isError reports whether a control message describes what is in the error queue.
func isError(h *unix.Cmsghdr) bool {
	switch h.Level {
	case unix.SOL_PACKET:
		return h.Type == unix.PACKET_TX_TIMESTAMP
	case unix.SOL_IP:
		return h.Type == unix.IP_RECVERR
	case unix.SOL_IPV6:
		return h.Type == unix.IPV6_RECVERR
	}
	return false
}
