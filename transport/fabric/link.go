package fabric

import (
	"fmt"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Link is a station's attachment to a fabric: a transport.Link, Joiner, WakeupMasker and Namer.
// Like a NIC it takes unicast frames for its own address, broadcasts and the groups that it joined,
// and pads short frames with zeros.
type Link struct {
	fabric *Fabric
	mac    transport.MAC
	number int
	closed atomic.Bool

	// Guarded by fabric.mu.
	dev     *device
	port    int
	down    bool
	groups  map[transport.MAC]int // joins
	sent    transport.Counters    // the Tx half
	dropped uint64

	queue  queue
	wakeup wakeup
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Joiner       = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
	_ transport.Namer        = (*Link)(nil)
)

func newLink(f *Fabric, mac transport.MAC) *Link {
	l := &Link{fabric: f, mac: mac, number: f.attached, groups: make(map[transport.MAC]int)}
	l.queue.init(f.cfg.QueueFrames, f.cfg.MTU)
	l.wakeup.init()
	return l
}

// MAC returns the link's address.
func (l *Link) MAC() transport.MAC { return l.mac }

// MTU returns Config.MTU.
func (l *Link) MTU() int { return l.fabric.cfg.MTU }

// Name returns a name that is unique in this process: fabric0/3 is the fourth link of the first
// fabric.
func (l *Link) Name() string { return fmt.Sprintf("%v/%d", l.fabric, l.number) }

// LocalPath implements transport.LocalPather.
func (l *Link) LocalPath() transport.LocalPath { return transport.InProcess }

// Send carries the frames through the fabric into the receivers' queues and wakes receivers in
// Wait. If a queue has no room, the error is transport.ErrBusy and that frame arrived nowhere (but
// see Config.DropWhenFull).
func (l *Link) Send(frames []transport.Frame) (n int, err error) {
	f := l.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	now := f.now()
	for i := range frames {
		if err := l.sendOne(now, &frames[i]); err != nil {
			return i, err
		}
	}
	return len(frames), nil
}

// sendOne sends a frame and counts it. The fabric's lock is held.
func (l *Link) sendOne(now monotime.Time, frame *transport.Frame) error {
	if err := transport.CheckFrame(frame, l.fabric.cfg.MTU); err != nil {
		l.sent.TxRefused++
		return err
	}
	if !l.down && !l.fabric.deliver(now, l, frame) {
		l.sent.TxBusy++
		return transport.ErrBusy
	}
	l.sent.TxFrames++
	l.sent.TxBytes += uint64(frame.WireLen())
	return nil
}

// Poll moves received frames into frames, without waiting, and returns how many: at most half of
// Config.QueueFrames. Payloads are views of the link's memory, valid until the next Poll or Close.
// It takes no lock. Only one goroutine may poll a link at a time.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	if l.closed.Load() {
		return 0, transport.ErrClosed
	}
	return l.queue.poll(frames), nil
}

// Counters implements transport.Link.
func (l *Link) Counters() transport.Counters {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	c := l.sent
	c.RxFrames, c.RxBytes, c.RxDropped = l.queue.handedOut(), l.queue.rxPublic.Load(), l.dropped
	return c
}

// Close unplugs the link for good. The switch forgets its address, which is free again, as is its
// port; frames for it are lost and stop no sender.
func (l *Link) Close() error {
	f := l.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.closed.Swap(true) {
		return nil
	}
	close(l.wakeup.done)
	l.dev.removePort(l.port)
	delete(f.macs, l.mac)
	return nil
}

// SetUp unplugs the link, or plugs it in again. While it is unplugged, frames from it and to it are
// lost, and the switch forgets its address.
func (l *Link) SetUp(up bool) {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	if !l.closed.Load() {
		l.down = !up
		l.dev.fwd.SetUp(l.port, up)
	}
}

// Join implements transport.Joiner. Errors: ErrClosed; not a group address.
func (l *Link) Join(group transport.MAC) error {
	if !group.IsMulticast() {
		return fmt.Errorf("%s: join %v: not a group address (want one with an odd first byte)", l.Name(), group)
	}
	return l.addJoins(group, 1)
}

// Leave implements transport.Joiner. Errors: ErrClosed; more Leaves than Joins.
func (l *Link) Leave(group transport.MAC) error { return l.addJoins(group, -1) }

// addJoins counts a join, or takes one back.
func (l *Link) addJoins(group transport.MAC, n int) error {
	l.fabric.mu.Lock()
	defer l.fabric.mu.Unlock()
	switch joins := l.groups[group] + n; {
	case l.closed.Load():
		return transport.ErrClosed
	case joins < 0:
		return fmt.Errorf("%s: leave %v: not joined (or left already)", l.Name(), group)
	case joins == 0:
		delete(l.groups, group)
	default:
		l.groups[group] = joins
	}
	return nil
}

// wants is the station's address filter. The fabric's lock is held.
func (l *Link) wants(dst transport.MAC) bool {
	if !dst.IsMulticast() {
		return dst == l.mac
	}
	return dst == transport.Broadcast || l.groups[dst] > 0
}
