package linktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// wire is the plainest link that passes: one lock for both ends, a slice as the queue, a channel
// that wakes. A fault makes it break one promise, to show that the suite notices.
type wire struct {
	mac   transport.MAC
	mtu   int
	fault string

	shared *sync.Mutex // guards all below, of both ends
	peer   *wire
	queue  []transport.Frame
	views  []transport.Frame // what the last Poll returned
	free   [][]byte
	joined map[transport.MAC]int
	masked bool
	closed bool
	count  transport.Counters
	wake   chan struct{} // capacity 1: something may have changed
}

func newWirePair(fault string) (a, b *wire) {
	mu := new(sync.Mutex)
	ends := [2]*wire{}
	for i := range ends {
		ends[i] = &wire{
			mac: transport.MAC{2, 0, 0, 0, 0, byte(i + 1)}, mtu: 1500, fault: fault, shared: mu,
			joined: make(map[transport.MAC]int), wake: make(chan struct{}, 1),
			queue: make([]transport.Frame, 0, 4096), views: make([]transport.Frame, 0, 4096),
		}
		for range 4096 {
			ends[i].free = append(ends[i].free, make([]byte, 0, 1600))
		}
	}
	ends[0].peer, ends[1].peer = ends[1], ends[0]
	return ends[0], ends[1]
}

func (w *wire) MAC() transport.MAC { return w.mac }
func (w *wire) MTU() int           { return w.mtu }

func (w *wire) Counters() transport.Counters {
	w.shared.Lock()
	defer w.shared.Unlock()
	return w.count
}

func (w *wire) Send(frames []transport.Frame) (int, error) {
	w.shared.Lock()
	defer w.shared.Unlock()
	if w.closed {
		return 0, transport.ErrClosed
	}
	for i := range frames {
		if err := transport.CheckFrame(&frames[i], w.mtu); err != nil && w.fault != "takes all" {
			w.count.TxRefused++
			return i, err
		}
		f := frames[i]
		if f.Src.IsZero() {
			f.Src = w.mac
		}
		if n := len(f.Headroom); n > 0 && w.fault == "overruns headroom" {
			f.Headroom[:n+len(f.Payload)+1][n+len(f.Payload)] = 0 // as one that pads where there is no room
		} else if n >= transport.MaxHeaderLen && w.fault == "trusts headroom" {
			f.Payload = f.Headroom[:n+len(f.Payload)][n:]
		}
		if w.fault != "hands out headroom" {
			f.Headroom = nil
		}
		if w.fault != "hands out answers" {
			f.Answers = nil
		}
		w.count.TxFrames++
		w.count.TxBytes += uint64(f.WireLen())
		w.peer.arrive(f)
		if w.fault == "hears itself" {
			w.arrive(f)
		}
	}
	return len(frames), nil
}

// arrive queues a copy of f. The lock is held.
func (w *wire) arrive(f transport.Frame) {
	wanted := f.Dst == w.mac || f.Dst == transport.Broadcast || w.joined[f.Dst] > 0
	if w.closed || !wanted && w.fault != "promiscuous" {
		return
	}
	if len(w.free) == 0 {
		w.count.RxDropped++
		return
	}
	if w.fault != "borrows payloads" {
		f.Payload = append(w.buffer(), f.Payload...)
	}
	switch w.fault {
	case "loses priority tags":
		f.Tagged = f.Tagged && f.Tag.VID != 0
	case "loses DEI":
		f.Tag.DEI = false
	case "dirty padding":
		for len(f.Payload) < minPayload {
			f.Payload = append(f.Payload, 0xee)
		}
	case "last in, first out":
		w.queue = slices.Insert(w.queue, 0, f)
		return
	}
	w.queue = append(w.queue, f)
	if !w.masked || w.fault == "ignores masking" {
		w.kick()
	}
}

func (w *wire) buffer() []byte {
	b := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	return b[:0]
}

func (w *wire) kick() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wire) Poll(frames []transport.Frame) (int, error) {
	w.shared.Lock()
	defer w.shared.Unlock()
	if w.closed {
		return 0, transport.ErrClosed
	}
	for _, f := range w.views {
		w.free = append(w.free, f.Payload)
	}
	n := min(len(frames), len(w.queue))
	for i := range n {
		origin := frames[i].Origin
		if frames[i] = w.queue[i]; w.fault == "leaves the origin" {
			frames[i].Origin = origin
		}
	}
	w.views = append(w.views[:0], w.queue[:n]...)
	if w.fault == "drops the rest" {
		w.queue = w.queue[:0]
	} else {
		w.queue = append(w.queue[:0], w.queue[n:]...)
	}
	for i := range frames[:n] {
		w.count.RxFrames++
		w.count.RxBytes += uint64(frames[i].WireLen())
	}
	if w.fault == "allocates" {
		w.views = slices.Clone(w.views)
	}
	return n, nil
}

func (w *wire) Wait(ctx context.Context) error {
	if w.fault == "edge-triggered" {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	for {
		w.shared.Lock()
		closed, some := w.closed, len(w.queue) > 0 && !w.masked
		w.shared.Unlock()
		if closed && w.fault != "sleeps through Close" {
			w.kick() // for other waiters
			return transport.ErrClosed
		}
		if some {
			return nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *wire) Close() error {
	w.shared.Lock()
	defer w.shared.Unlock()
	w.closed = true
	w.kick()
	return nil
}

func (w *wire) MaskWakeups(on bool) {
	w.shared.Lock()
	defer w.shared.Unlock()
	w.masked = on && w.fault != "ignores masking"
	if !on && w.fault != "sleeps on unmasked" {
		w.kick()
	}
}

func (w *wire) Join(group transport.MAC) error  { return w.member(group, 1) }
func (w *wire) Leave(group transport.MAC) error { return w.member(group, -1) }

func (w *wire) member(group transport.MAC, by int) error {
	w.shared.Lock()
	defer w.shared.Unlock()
	if w.closed {
		return transport.ErrClosed
	}
	if w.joined[group] += by; w.fault == "counts no joins" {
		w.joined[group] = max(by, 0)
	}
	return nil
}

func TestWire(t *testing.T) {
	TestLink(t, func(*testing.T) (a, b transport.Link) { return newWirePair("") })
}
