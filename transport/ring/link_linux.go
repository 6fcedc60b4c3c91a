package ring

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/netpoll"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// attachment is the half that all AF_PACKET links share. What Link has beside it is below.
type attachment = afpacket.Attachment

// Link is a transport.Link, Joiner, WakeupMasker, Sleeper, Namer, Sharer, Attached, TypeFilter,
// Trainer and Stamper on one network interface. Its method Promiscuous returns why it has made the
// NIC promiscuous, or "".
type Link struct {
	attachment
	socket socket
	trains *trains               // nil: none are received
	tpids  []transport.EtherType // of the last Poll's frames
	stamps []transport.Stamp     // likewise, if they are stamped
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Joiner       = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
	_ transport.Sleeper      = (*Link)(nil)
	_ transport.Namer        = (*Link)(nil)
	_ transport.Sharer       = (*Link)(nil)
	_ transport.Attached     = (*Link)(nil)
	_ transport.TypeFilter   = (*Link)(nil)
	_ transport.Trainer      = (*Link)(nil)
	_ transport.Stamper      = (*Link)(nil)
)

// Open attaches to the network interface called name. Without CAP_NET_RAW it asks the service of
// package grant for sockets, where there is one. With Config.Grant the interface is the grant's,
// and name is not used.
// Errors: transport.ErrNoInterface, ErrInterfaceDown, ErrPermission, ErrNotSupported.
func Open(name string, cfg Config) (*Link, error) {
	r := grant.Request{Interface: name, EtherType: cfg.EtherType, Ring: true, Slots: cfg.Slots}
	return grant.Link(cfg.Grant, r, cfg.open)
}

func (c Config) open(name string, granted *afpacket.Granted) (*Link, error) {
	l := &Link{socket: socket{slots: c.Slots, granted: granted}}
	l.socket.trains = afpacket.TakesTrains(c.NoTrains, granted, c.EtherType)
	if l.socket.trains {
		l.trains = new(trains)
	}
	err := afpacket.Open(&l.attachment, "ring", name, afpacket.Config{
		EtherType: c.EtherType, Promiscuous: c.Promiscuous, NoVLANs: c.NoVLANs, BypassQdisc: !c.Qdisc,
		Trains: l.socket.trains, Granted: granted, SoftwareStamps: true, // a slot has one stamp
	}, &l.socket)
	if err != nil {
		return nil, err
	}
	l.socket.wakeup.AskLeft(func() bool { return afpacket.Pending(&l.attachment) })
	return l, nil
}

// MaskWakeups implements transport.WakeupMasker. It costs one epoll_ctl(2), 0.35 µs.
func (l *Link) MaskWakeups(on bool) {
	l.socket.wakeup.Mask(on)
	if l.trains != nil {
		afpacket.MaskPending(&l.attachment, on, l.socket.wakeup.Kick)
	}
}

// Sleep implements transport.Sleeper.
func (l *Link) Sleep() error { return afpacket.Sleep(&l.attachment, l.socket.wakeup.Sleep) }

// Awake implements transport.Sleeper.
func (l *Link) Awake() { l.socket.wakeup.Awake() }

// Interrupt implements transport.Sleeper.
func (l *Link) Interrupt() { l.socket.wakeup.Interrupt() }

// TPID returns the EtherType of the i-th frame's tag in the last Poll: 0x8100 (802.1Q), 0x88a8
// (802.1ad), or 0 if the frame had none. Only the polling goroutine may call it.
func (l *Link) TPID(i int) transport.EtherType { return l.tpids[i] }

// ReceivedStamp implements transport.Stamper. It has the driver's alone, and none of trains.
func (l *Link) ReceivedStamp(i int) transport.Stamp {
	if i >= len(l.stamps) {
		return transport.Stamp{}
	}
	return l.stamps[i]
}

// Poll implements transport.Link. It makes no system call: an empty poll costs 10 ns, a frame 15 ns
// more. The slots of the frames go back to the kernel at the next Poll, those of frames that nobody
// wants at once. It looks at each slot once at most, so that no stream of such frames can hold it.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	s := &l.socket
	if !s.polling.CompareAndSwap(false, true) {
		if afpacket.Closed(&l.attachment) {
			return 0, transport.ErrClosed
		}
		return 0, nil // another goroutine polls, which the caller should have prevented
	}
	n := l.receive(frames)
	s.polling.Store(false)
	return n, nil
}

// receive is Poll on an open ring that no other goroutine polls.
func (l *Link) receive(frames []transport.Frame) (n int) {
	r := &l.socket.ring
	l.tpids, l.stamps = l.tpids[:0], l.stamps[:0]
	stamping := afpacket.Stamping(&l.attachment) // once: of each frame there is a stamp, or of none
	if l.trains == nil {
		r.release(0)
	} else {
		n = l.resume(frames, stamping)
	}
	looked := int(r.taken) // the slot of a train of which frames were left
	for ; n < len(frames) && looked < r.slots() && !l.trains.full(); looked++ {
		slot, ok := r.next()
		if !ok {
			break
		}
		received := slot.received()
		cars, isTrain := 0, false
		if l.trains != nil {
			cars, isTrain = l.receiveTrain(slot, received, frames[n:], stamping)
		}
		if !isTrain && afpacket.Accept(&l.attachment, received, &frames[n]) {
			cars = 1
			l.tpids = append(l.tpids, slot.tpid())
			if stamping {
				l.stamps = append(l.stamps, slot.stamp())
			}
		}
		if n += cars; n == 0 {
			r.release(0)
		}
		if isTrain && l.trains.train.Left() {
			break // or there is no buffer left
		}
	}
	if n > 0 {
		afpacket.CountReceived(&l.attachment, frames[:n])
	}
	return n
}

// Close implements transport.Link. It waits for a Poll in progress on another goroutine. Views of
// frames show nothing of use after it.
func (l *Link) Close() error { return l.attachment.Close() }

// socket is the receiving socket: a descriptor with its ring and its wake-ups.
type socket struct {
	slots   int // wanted; 0: the default
	trains  bool
	granted *afpacket.Granted
	mu      sync.Mutex // guards fd
	fd      int        // -1 when closed
	ring    ring
	wakeup  *netpoll.Wakeup
	polling atomic.Bool // a goroutine is in Poll, or Close has unmapped the ring
}

// Open implements afpacket.Socket.
func (s *socket) Open(ifi *afpacket.Interface) (_ *netpoll.Poller, err error) {
	if s.slots != 0 && (s.slots < 2 || s.slots > MaxSlots) {
		return nil, fmt.Errorf("Config.Slots %d: out of range (2 to %d)", s.slots, MaxSlots)
	}
	layout := afpacket.NewRingLayout(ifi.MTU, s.slots)
	if s.granted == nil {
		s.fd, err = afpacket.OpenSocket()
	} else {
		s.fd, err = s.granted.TakeReceive()
		layout = s.granted.Layout
	}
	if err != nil {
		return nil, afpacket.Explain("make the socket", err)
	}
	if s.trains {
		err = afpacket.Explain("receive trains", afpacket.ReceiveTrains(s.fd, afpacket.RingTrains))
	}
	if err == nil {
		err = afpacket.Explain("make the ring", s.ring.open(s.fd, layout, s.granted != nil))
	}
	if err == nil {
		s.wakeup, err = netpoll.NewWakeup(s.fd)
		err = afpacket.Explain("watch the socket", err)
	}
	if err != nil {
		s.ring.close()
		_ = unix.Close(s.fd) // the first error is the one to report
		return nil, err
	}
	s.wakeup.AskInMemory(s.pending)
	return s.wakeup.Poller(), nil
}

// pending reports whether a Poll would find a frame. One in progress may.
func (s *socket) pending() bool {
	if !s.polling.CompareAndSwap(false, true) {
		return true
	}
	defer s.polling.Store(false)
	return s.ring.filled()
}

// Control implements afpacket.Socket. The lock keeps fd ours: a number that Close has freed may be
// another file's.
func (s *socket) Control(f func(fd int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fd < 0 {
		return transport.ErrClosed
	}
	return f(s.fd)
}

// Close implements afpacket.Socket. It waits for a Poll in progress on another goroutine; polling
// stays true, as the ring is gone.
func (s *socket) Close() error {
	for !s.polling.CompareAndSwap(false, true) {
		runtime.Gosched()
	}
	s.wakeup.Close()
	s.ring.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}
