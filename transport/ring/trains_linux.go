package ring

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/transport"
)

// trains is what a link has of received trains. A short one is in a slot of the ring. Of a longer
// one the slot says so, and the kernel keeps it for recv(2).
type trains struct {
	train  afpacket.Train // of which frames are left
	tpid   transport.EtherType
	inSlot bool // it is in the last slot that was taken
	bufs   [trainBuffers][]byte
	used   int // how many of bufs have frames that Poll has handed out, or will
}

// trainBuffers is how many long trains one Poll takes at most. They are made when they are needed.
const trainBuffers = 8

// trainBuffer is a buffer's length: the longest packet, with all headers.
const trainBuffer = 1<<16 + 64

// full reports whether there is no buffer for a long train.
func (t *trains) full() bool { return t != nil && t.used == trainBuffers }

// buffer returns the next buffer.
func (t *trains) buffer() []byte {
	if t.bufs[t.used] == nil {
		t.bufs[t.used] = make([]byte, trainBuffer)
	}
	return t.bufs[t.used]
}

// resume begins a Poll: it gives back what the last one handed out, but not the memory of frames
// that are left, and hands those out.
func (l *Link) resume(frames []transport.Frame, stamping bool) int {
	t := l.trains
	if !t.train.Left() {
		t.used = 0
		l.socket.ring.release(0)
		return 0
	}
	if t.inSlot {
		t.used = 0
		l.socket.ring.release(1)
	} else {
		t.bufs[0], t.bufs[t.used-1] = t.bufs[t.used-1], t.bufs[0]
		t.used = 1
		l.socket.ring.release(0)
	}
	return l.nextOfTrain(frames, stamping)
}

// nextOfTrain hands out frames of the train, which have no stamps.
func (l *Link) nextOfTrain(frames []transport.Frame, stamping bool) int {
	n := l.trains.train.Next(frames)
	for range n {
		l.tpids = append(l.tpids, l.trains.tpid)
		if stamping {
			l.stamps = append(l.stamps, transport.Stamp{})
		}
	}
	afpacket.SetPending(&l.attachment, l.trains.train.Left(), l.socket.wakeup.Kick)
	return n
}

// receive is recv(2). It returns the length of the packet, also where buf is shorter.
func (s *socket) receive(buf []byte) (size int, e unix.Errno) {
	got, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&buf[0])),
		uintptr(len(buf)), unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
	return int(got), e
}

// receiveTrain hands out frames of the train in a slot, or of which the slot tells. isTrain is
// false if the slot has a frame as it is.
func (l *Link) receiveTrain(
	s slot, in afpacket.Received, frames []transport.Frame, stamping bool,
) (n int, isTrain bool) {
	t := l.trains
	virtio := s.beforeFrame(afpacket.VirtioLen)
	long := s.header.Status&unix.TP_STATUS_COPY != 0
	if long {
		buf := t.buffer()
		size, e := l.socket.receive(buf)
		if e != 0 { // that the interface went down, which the socket says once, and before all it has
			_ = afpacket.LinkError(&l.attachment, "poll", e) // the next Wait says so
			size, e = l.socket.receive(buf)
		}
		if e == 0 && size >= afpacket.VirtioLen {
			virtio = buf[:afpacket.VirtioLen]
			in.Bytes, in.Len = buf[afpacket.VirtioLen:min(size, len(buf))], size-afpacket.VirtioLen
		}
	}
	ok, isTrain := afpacket.ReceivedTrain(&l.attachment, in, virtio, &t.train)
	if !ok {
		return 0, isTrain
	}
	t.tpid, t.inSlot = s.tpid(), !long
	if long {
		t.used++
	}
	return l.nextOfTrain(frames, stamping), true
}
