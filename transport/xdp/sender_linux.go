package xdp

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/xsk"
	"github.com/rawlane/rawlane/transport"
)

// sendFrames is how many frames may be under way to the NIC. A batch is what the kernel sends in
// one call.
const (
	sendFrames = xsk.SendFrames
	sendBatch  = 32
)

// sender builds frames in the memory of a socket and has the kernel send them. It may be used from
// any goroutine.
type sender struct {
	src      transport.MAC
	mtu      int
	zeroCopy bool
	kick     func() // ends a Wait

	mu     sync.Mutex  // guards all that follows, and the socket's rings for sending
	socket *xsk.Socket // nil when closed
	free   []int       // chunks that are not under way, the last used last

	underWay [sendFrames]bool // which chunks are

	withdrawn []xsk.Desc // scratch memory of withdraw

	// waiting: frames are in the ring that the kernel has not taken, as the NIC was full. Who polls
	// or waits has it try again. It is written under mu.
	waiting atomic.Bool

	// left: a wake-up of a zero-copy NIC has left frames in the ring. Its driver goes on with them,
	// unless it sleeps again: who polls or waits looks. It is written under mu.
	left atomic.Bool

	// Counters.
	frames, bytes, refused, busy uint64
}

// open prepares the sender for frames from src by a socket.
func (s *sender) open(socket *xsk.Socket, src transport.MAC, mtu int, kick func()) {
	s.src, s.mtu, s.zeroCopy, s.kick = src, mtu, socket.ZeroCopy(), kick
	s.free = make([]int, sendFrames)
	for k := range s.free {
		s.free[k] = k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket = socket
}

// close makes later sends return transport.ErrClosed.
func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket = nil
	s.waiting.Store(false)
	s.left.Store(false)
}

// send sends frames in order and returns how many it took.
// Errors: ErrBusy, ErrClosed, those of transport.CheckFrame, an errno.
func (s *sender) send(frames []transport.Frame) (sent int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.socket == nil {
		return 0, transport.ErrClosed
	}
	if s.waiting.Load() {
		err = s.flushWaiting()
	}
	for err == nil && sent < len(frames) {
		if s.waiting.Load() {
			err = transport.ErrBusy
			break
		}
		var n int
		n, err = s.sendBatch(frames[sent:])
		sent += n
	}
	if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
		s.busy++
	} else if err != nil {
		s.refused++
	}
	return sent, err
}

// sendBatch sends up to a batch of frames.
func (s *sender) sendBatch(frames []transport.Frame) (taken int, err error) {
	if s.reap(); len(s.free) == 0 {
		_ = s.flush() // a zero-copy NIC says what has left when it is woken; what fails, fails again
		s.reap()
	}
	frames = frames[:min(len(frames), sendBatch, len(s.free), s.socket.Transmit.Room())]
	if len(frames) == 0 {
		return 0, transport.ErrBusy
	}
	size := 0
	for i := range frames {
		if err = transport.CheckFrame(&frames[i], s.mtu); err != nil {
			break
		}
		s.put(&frames[i])
		size += frames[i].WireLen()
		taken++
	}
	if taken > 0 {
		s.socket.Transmit.Submit()
		if failure := s.flush(); failure != nil {
			// Those of earlier Sends are first, and were taken: they are lost.
			taken, err = max(0, taken-s.withdraw()), failure
			size = 0
			for i := range frames[:taken] {
				size += frames[i].WireLen()
			}
		}
		s.frames += uint64(taken)
		s.bytes += uint64(size)
	}
	return taken, err
}

// void is a descriptor that the kernel sends nothing of: its address is outside of any memory.
var void = xsk.Desc{Addr: 1 << 62}

// withdraw takes back the frames that are in the ring, as the interface is down or gone, and
// returns how many: they would leave late, when it is up again. The ring is empty again once the
// kernel takes entries, and until then no Send adds any.
func (s *sender) withdraw() int {
	s.withdrawn = s.socket.Transmit.Withdraw(void, s.withdrawn[:0])
	n := 0
	for _, d := range s.withdrawn {
		if s.giveBack(d.Addr) {
			n++
		}
	}
	return n
}

// giveBack makes a chunk free, if it is one that is under way: some kernels complete void entries,
// too.
func (s *sender) giveBack(addr uint64) bool {
	k, ok := s.socket.IndexToSend(addr)
	if !ok || !s.underWay[k] {
		return false
	}
	s.free, s.underWay[k] = append(s.free, k), false
	return true
}

// reap takes back the chunks of frames that have left.
func (s *sender) reap() {
	c := &s.socket.Completed
	n := c.Ready()
	if n == 0 {
		return
	}
	for range n {
		s.giveBack(c.Take())
	}
	c.Release()
}

// put builds a frame in a free chunk and puts it into the ring. Short frames are padded with zeros,
// as NICs do and veth does not: the kernel drops a tagged frame with fewer than two bytes behind
// the tag.
func (s *sender) put(f *transport.Frame) {
	last := len(s.free) - 1
	k := s.free[last]
	s.free, s.underWay[k] = s.free[:last], true
	addr := s.socket.ToSend(k)
	b := s.socket.Chunk(addr)
	n := f.PutHeader(b)
	if f.Src.IsZero() {
		copy(b[6:12], s.src[:])
	}
	n += copy(b[n:], f.Payload)
	if n < transport.MinFrameLen {
		clear(b[n:transport.MinFrameLen])
		n = transport.MinFrameLen
	}
	s.socket.Transmit.Put(xsk.Desc{Addr: addr, Len: uint32(n)})
}

// flush has the kernel take what is in the ring. What it does not take now, as the NIC is full or
// the interface is down, stays there, and waiting says so.
func (s *sender) flush() error {
	tx := &s.socket.Transmit
	if s.zeroCopy {
		return s.flushZeroCopy()
	}
	// Each call takes a batch, or ends at a frame that is lost (EBUSY: no carrier) or void. Those
	// count as taken with a later call.
	for left, losses := tx.Waiting(), 0; left > 0; {
		e := s.socket.Wake()
		now := tx.Waiting()
		switch {
		case now < left || e == unix.EINTR:
		case (e == 0 || e == unix.EBUSY) && losses < sendFrames:
			losses++
		case e == 0, e == unix.EBUSY, e == unix.EAGAIN, e == unix.ENOBUFS, e == unix.ENOMEM:
			s.setWaiting(true)
			return nil
		default:
			s.setWaiting(true)
			return e
		}
		left = now
	}
	s.setWaiting(false)
	return nil
}

// flushZeroCopy is flush where the NIC's driver takes the frames from the ring: it needs a call if
// it sleeps.
func (s *sender) flushZeroCopy() error {
	tx := &s.socket.Transmit
	var e unix.Errno
	if tx.NeedWakeup() {
		e = s.socket.Wake()
	}
	down := e == unix.ENETDOWN || e == unix.ENXIO
	s.setWaiting(down)
	left := !down && tx.Waiting() > 0
	if s.left.Swap(left) != left && left && e != 0 {
		s.kick() // it was not woken: a wait that sleeps already has to try again
	}
	if down {
		return e
	}
	return nil
}

// flushWaiting is flush for frames of earlier Sends, which wait in the ring. Those were taken: if
// the interface is down or gone, they are lost.
func (s *sender) flushWaiting() error {
	err := s.flush()
	if err != nil {
		s.withdraw()
	}
	return err
}

func (s *sender) setWaiting(on bool) {
	if s.waiting.Load() == on {
		return
	}
	s.waiting.Store(on)
	if on {
		s.kick() // a wait that sleeps already has to try again, too
	}
}

// pending reports whether who polls or waits is to call retry.
func (s *sender) pending() bool { return s.waiting.Load() || s.left.Load() }

// retry is flush for who polls or waits. It reports whether the NIC is still full, or still sleeps
// with frames before it. While another goroutine is sending, which does the same, that is not
// known, and it says so.
func (s *sender) retry() (full bool) {
	if !s.mu.TryLock() {
		return true
	}
	defer s.mu.Unlock()
	if s.socket == nil {
		return false
	}
	if !s.waiting.Load() && s.socket.Transmit.Waiting() == 0 {
		s.left.Store(false)
		return false
	}
	err := s.flushWaiting()
	return err == nil && (s.waiting.Load() || s.left.Load() && s.socket.Transmit.NeedWakeup())
}

// count fills in the Tx half of a link's counters.
func (s *sender) count(c *transport.Counters) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.TxFrames, c.TxBytes, c.TxRefused, c.TxBusy = s.frames, s.bytes, s.refused, s.busy
}
