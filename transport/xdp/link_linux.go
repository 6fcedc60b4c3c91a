package xdp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/prefetch"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
)

// attachment is the half that all links of the kernel share. Its socket receives no frames: it
// joins groups and tells of the interface.
type attachment = afpacket.Attachment

// Link is a transport.Link, Joiner, WakeupMasker, Namer, Sharer, Attached and TypeFilter on one
// network interface. Its method Promiscuous returns why it has made the NIC promiscuous, or "".
type Link struct {
	attachment
	door   door
	sender sender

	polling atomic.Bool // a goroutine is in Poll, or Close has taken the memory
	masked  atomic.Bool // wake-ups are
	first   int         // the queue that the next Poll looks at first
	tpids   []transport.EtherType
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
)

// Open attaches to the network interface called name. Without the capabilities it asks the service
// of package grant, where there is one. With Config.Grant the interface is the grant's, and name is
// not used.
// Errors: transport.ErrNoInterface, ErrInterfaceDown, ErrPermission, ErrNotSupported, ErrTooLarge
// (the interface's MTU), a *OccupiedError (the interface has an XDP program).
func Open(name string, cfg Config) (*Link, error) {
	r := grant.Request{
		Interface: name, EtherType: cfg.EtherType,
		XDP: true, Slots: cfg.Slots, Mode: cfg.Mode.String(), NoVLANs: cfg.NoVLANs,
	}
	return grant.Link(cfg.Grant, r, cfg.open)
}

func (c Config) open(name string, granted *afpacket.Granted) (*Link, error) {
	l := &Link{door: door{cfg: c, granted: granted}}
	l.door.link = l
	err := l.door.check()
	if err != nil {
		return nil, fmt.Errorf("xdp %s: open: %w", name, err)
	}
	err = afpacket.Open(&l.attachment, "xdp", name, afpacket.Config{
		EtherType: c.EtherType, Promiscuous: c.Promiscuous, NoVLANs: c.NoVLANs, Monitor: true, Granted: granted,
	}, &l.door)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Mode returns how the link gets its frames: ZeroCopy, Native or Generic.
func (l *Link) Mode() Mode { return l.door.mode }

// Fallback returns why the mode is not a better one, or "" if it is the best or was asked for.
func (l *Link) Fallback() string { return l.door.fallback }

// Queues returns how many receive queues the link receives from: all that the interface had when it
// was opened.
func (l *Link) Queues() int { return l.door.number }

// MaskWakeups implements transport.WakeupMasker. It costs one epoll_ctl(2) for each receive queue
// and one for the packet socket, 0.35 µs each.
func (l *Link) MaskWakeups(on bool) {
	l.masked.Store(on)
	l.door.wakeup.Mask(on)
	if !on && l.sender.pending() {
		l.kick()
	}
}

// Sleep implements transport.Sleeper. A full NIC is left to those in Wait, who try again.
func (l *Link) Sleep() error { return afpacket.Sleep(&l.attachment, l.door.wakeup.Sleep) }

// Awake implements transport.Sleeper.
func (l *Link) Awake() { l.door.wakeup.Awake() }

// Interrupt implements transport.Sleeper.
func (l *Link) Interrupt() { l.door.wakeup.Interrupt() }

// kick ends the wait in progress, or the next one, for what no socket tells of.
func (l *Link) kick() { l.door.wakeup.Poller().Kick() }

// TPID returns the EtherType of the i-th frame's tag in the last Poll: 0x8100 (802.1Q), 0x88a8
// (802.1ad), or 0 if the frame had none. Only the polling goroutine may call it.
func (l *Link) TPID(i int) transport.EtherType { return l.tpids[i] }

// Send implements transport.Link. The kernel is called once for 32 frames.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.sender.send(frames)
	if err == nil {
		return n, nil
	}
	return n, afpacket.LinkError(&l.attachment, "send", err)
}

// Poll implements transport.Link. It makes no system call, unless frames wait for a NIC that was
// full, or a zero-copy NIC sleeps, with frames before it or without memory. The memory of the
// frames goes back to the kernel at the next Poll.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	if !l.polling.CompareAndSwap(false, true) {
		if afpacket.Closed(&l.attachment) {
			return 0, transport.ErrClosed
		}
		return 0, nil // another goroutine polls, which the caller should have prevented
	}
	n := l.receive(frames)
	l.polling.Store(false)
	if l.sender.pending() {
		l.sender.retry()
	}
	return n, nil
}

// receive is Poll on an open link that no other goroutine polls.
func (l *Link) receive(frames []transport.Frame) (n int) {
	l.tpids = l.tpids[:0]
	queues := l.door.queues
	for i := range queues {
		k := l.first + i
		if k >= len(queues) {
			k -= len(queues)
		}
		n += l.receiveFrom(&queues[k], frames[n:])
	}
	if l.first++; l.first == len(queues) {
		l.first = 0
	}
	if n > 0 {
		afpacket.CountReceived(&l.attachment, frames[:n])
	}
	return n
}

// receiveFrom takes frames from one queue, after it has given back those of the last Poll. Frames
// that nobody wants it gives back at once. It looks at those that are there when it begins, so that
// no stream of them can hold it.
func (l *Link) receiveFrom(q *queue, frames []transport.Frame) (n int) {
	q.release()
	s := q.socket
	ready := s.Received.Ready()
	if ready == 0 {
		return 0
	}
	prefetch.Read(s.Expected()) // while the descriptor comes, which is in another core's cache, too
	unwanted := false
	for ; ready > 0 && n < len(frames); ready-- {
		b, chunk, ok := s.Frame(s.Received.Take())
		if !ok {
			continue // no memory of ours: there is nothing to give back
		}
		tpid, wanted := afpacket.AcceptWhole(&l.attachment, b, &frames[n])
		if !wanted {
			s.Fill.Put(chunk)
			unwanted = true
			continue
		}
		q.taken, q.viewed = append(q.taken, chunk), true
		l.tpids = append(l.tpids, tpid)
		n++
	}
	s.Received.Release()
	if unwanted {
		s.Fill.Submit()
	}
	return n
}

// received reports whether a Poll would find a frame. One in progress may.
func (l *Link) received() bool {
	if !l.polling.CompareAndSwap(false, true) {
		return true
	}
	defer l.polling.Store(false)
	for k := range l.door.queues {
		s := l.door.queues[k].socket
		if s.Received.Ready() > 0 {
			return true
		}
		if s.Fill.NeedWakeup() { // else the NIC would not know that it has memory again
			s.WakeReceive()
		}
	}
	return false
}

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller and holds no thread.
// It returns transport.ErrInterfaceDown while the interface is down, ErrNoInterface once it is
// gone. One that is removed goes down first: the Wait that sees it may say so, and the next
// ErrNoInterface.
func (l *Link) Wait(ctx context.Context) error {
	if l.sender.pending() && !l.masked.Load() && l.sender.retry() {
		return l.waitForRoom(ctx)
	}
	return l.attachment.Wait(ctx)
}

// retryTime is how long a Wait leaves a full NIC alone: about what one of 1 Gbit/s needs for ten
// full frames.
const retryTime = 100 * time.Microsecond

// waitForRoom is a short Wait while the NIC is full: nothing tells when it has room again.
func (l *Link) waitForRoom(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, retryTime)
	defer cancel()
	err := l.attachment.Wait(short)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // the next Poll tries again
	}
	return err
}

// Counters implements transport.Link. RxDropped is what the kernel had no room for, and frames of
// receive queues that are newer than the link, unless it is granted. In mode ZeroCopy it does not
// have what the NIC drops itself, as the link has no memory free: that is in the NIC's own
// statistics (ethtool -S), if it counts them.
func (l *Link) Counters() (c transport.Counters) {
	afpacket.ReadReceived(&l.attachment, &c)
	c.RxDropped = l.door.drops()
	l.sender.count(&c)
	return c
}

// Close implements transport.Link. It waits for a Poll in progress on another goroutine. Views of
// frames show nothing of use after it.
func (l *Link) Close() error { return l.attachment.Close() }
