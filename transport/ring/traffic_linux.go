package ring

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/transport"
)

// rxCounters are written by the poller alone, and read by anybody: plain stores do.
type rxCounters struct{ frames, bytes, malformed atomic.Uint64 }

func add(c *atomic.Uint64, n int) { c.Store(c.Load() + uint64(n)) }

func (r *rxCounters) read(c *transport.Counters) {
	c.RxFrames, c.RxBytes, c.RxMalformed = r.frames.Load(), r.bytes.Load(), r.malformed.Load()
}

// Poll implements transport.Link. It makes no system call: an empty poll costs 10 ns, a frame 15 ns more. The slots
// of the frames go back to the kernel at the next Poll.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	if !l.polling.CompareAndSwap(false, true) {
		if l.closed.Load() {
			return 0, transport.ErrClosed
		}
		return 0, nil // another goroutine polls, which the caller should have prevented
	}
	if l.closed.Load() {
		l.polling.Store(false)
		return 0, transport.ErrClosed
	}
	l.ring.release()
	l.tpids = l.tpids[:0]
	n, bytes := 0, 0
	for n < len(frames) {
		h, memory, ok := l.ring.next()
		if !ok {
			break
		}
		f := &frames[n]
		tpid, ok := parse(h, memory, f)
		if !ok {
			add(&l.rx.malformed, 1)
			continue
		}
		if f.Dst.IsMulticast() && !l.all && !l.groups.Has(f.Dst) {
			continue
		}
		l.tpids = append(l.tpids, tpid)
		bytes += f.WireLen()
		n++
	}
	if n > 0 {
		add(&l.rx.frames, n)
		add(&l.rx.bytes, bytes)
	}
	l.polling.Store(false)
	return n, nil
}

// TPID returns the EtherType of the i-th frame's tag in the last Poll: 0x8100 (802.1Q), 0x88a8 (802.1ad), or 0 if the
// frame had none. Only the goroutine that polls may call it.
func (l *Link) TPID(i int) transport.EtherType { return l.tpids[i] }

// Send implements transport.Link. A frame costs one send(2), a batch one sendmmsg(2) per afpacket.Batch frames.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	n, err := l.outbox.Send(frames)
	return n, l.wrap("send", err)
}
