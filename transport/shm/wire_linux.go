package shm

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/shm/internal/records"
)

// wireRetry is the pause after the wire failed to wait, as it does while its interface is down.
const wireRetry = 10 * time.Millisecond

// wire is the link for stations that are not on this host.
type wire struct {
	link   transport.Link
	masker transport.WakeupMasker // nil: the wire has no masks
	roams  *roamingWire           // nil: the wire need not be told where stations are
	stamps *stampedWire           // nil: the wire has no stamps
	outer  transport.Link         // the wire, with these two around it
	ready  atomic.Bool            // it may have something to poll
	polled chan struct{}          // capacity 1: Poll has looked since ready was set
	err    atomic.Pointer[error]  // why it cannot wait
	gone   atomic.Bool            // that is for good
	first  bool                   // the next Poll looks at the wire first

	// Guarded by Link.txMu.
	taken uint64 // frames that it has taken
	still still  // for how long it has had no room for a multicast
}

func newWire(l transport.Link) *wire {
	w := &wire{link: l, outer: l, polled: make(chan struct{}, 1)}
	if w.roams = newRoamingWire(w.outer); w.roams != nil {
		w.outer = w.roams
	}
	if w.stamps = newStampedWire(w.outer); w.stamps != nil {
		w.outer = w.stamps
	}
	w.masker, _ = transport.As[transport.WakeupMasker](l)
	return w
}

// wireLoop waits for the wire on behalf of all who wait for the link.
func (l *Link) wireLoop() {
	w := l.wire
	for {
		err := w.wait(l.open)
		if l.closed.Load() {
			return
		}
		pause := (<-chan time.Time)(nil)
		switch {
		case err == nil:
			w.err.Store(nil)
		case isGone(err):
			w.err.Store(&err)
			w.gone.Store(true)
			l.alert()
			return
		default:
			w.err.Store(&err)
			pause = time.After(wireRetry)
		}
		w.ready.Store(true)
		if !l.masked.Load() {
			l.alert()
		}
		select {
		case <-w.polled:
		case <-pause:
		case <-l.open.Done():
			return
		}
	}
}

// wait is the link's Wait. After one that failed it returns soon, without an error if the wire is
// well again, though nothing comes: else that would be known with the next frame.
func (w *wire) wait(open context.Context) error {
	if w.err.Load() == nil {
		return w.link.Wait(open)
	}
	ctx, cancel := context.WithTimeout(open, wireRetry)
	defer cancel()
	err := w.link.Wait(ctx)
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		return nil
	}
	return err
}

// wireErr returns why the wire cannot wait, unless memory has something for this link, or may have:
// then it works on.
func (l *Link) wireErr() error {
	err := l.wire.err.Load()
	if err == nil || l.hasSources() {
		return nil
	}
	return *err
}

// hasSources reports whether frames may come through memory: from stations that are reached, or
// those that stations have left which are gone.
func (l *Link) hasSources() bool {
	if len(l.stations.Load().all) > 0 {
		return true
	}
	for i := range l.sources[:l.used.Load()] {
		if l.sources[i].Load() != nil {
			return true
		}
	}
	return false
}

// pollBoth is Poll with a wire. Memory comes first, unless it has filled the caller's slice the
// last time.
func (l *Link) pollBoth(frames []transport.Frame) (n int, err error) {
	w := l.wire
	w.stamps.reset()
	if w.first {
		w.stamps.starts(0)
		n, err = l.pollWire(frames)
	}
	n += l.pollMemory(frames[n:])
	if !w.first && n < len(frames) {
		var more int
		w.stamps.starts(n)
		more, err = l.pollWire(frames[n:])
		n += more
	}
	w.first = !w.first && n == len(frames)
	switch {
	case err == nil:
	case l.closed.Load():
		return n, transport.ErrClosed
	case l.hasSources():
		return n, nil // the link works on, and Wait does not tell, either
	}
	return n, err
}

// pollWire polls the wire. Of a multicast from a station that is reached through memory there is a
// copy there, and the one of the wire is dropped; it may still tell the wire where its sender is.
func (l *Link) pollWire(frames []transport.Frame) (n int, err error) {
	w := l.wire
	waited := len(frames) > 0 && w.ready.Load()
	if waited {
		w.ready.Store(false)
	}
	t := l.stations.Load()
	w.roams.polls(t)
	came, err := w.link.Poll(frames)
	if waited { // what is left ends the wire's next Wait
		select {
		case w.polled <- struct{}{}:
		default: // one is there
		}
	}
	if came == 0 {
		return 0, err
	}
	size := 0
	for i := range frames[:came] {
		if frames[i].Dst.IsMulticast() && t.byMAC[frames[i].Src] != nil {
			w.roams.drop(&frames[i])
			continue
		}
		frames[n] = frames[i]
		w.stamps.add(i)
		size += frames[n].WireLen()
		n++
	}
	l.rx.frames.Add(uint64(n))
	l.rx.bytes.Add(uint64(size))
	return n, err
}

// sendBoth sends frames for stations of this host through memory, and others by the wire: those
// that follow each other in one call, so that the wire may send them together. A wire that lets
// nothing pass keeps no multicast from the stations of this host, if there are any.
func (l *Link) sendBoth(frames []transport.Frame) (int, error) {
	t := l.stations.Load()
	for i := 0; i < len(frames); {
		f := &frames[i]
		if err := transport.CheckFrame(f, l.mtu); err != nil {
			return i, err
		}
		if f.Dst.IsMulticast() {
			if l.wire.gone.Load() && len(t.all) > 0 {
				l.copyToAll(t, f)
				i++
				continue
			}
		} else if s := l.station(t, f.Dst); s != nil {
			switch l.put(s, f) {
			case records.Done:
				i++
				continue
			case records.None:
				return i, transport.ErrBusy
			}
		}
		n, err := l.sendWire(t, frames[i:])
		i += n
		if err != nil {
			if !frames[i].Dst.IsMulticast() || len(t.all) == 0 || !l.wire.isStuck(err) {
				return i, err
			}
			l.copyToAll(t, &frames[i])
			i++
		}
	}
	return len(frames), nil
}

// isStuck reports whether a multicast that the wire has refused is to reach the stations of this
// host alone: the wire is down or gone, or has had no room for any frame for as long as a ring has
// that nobody reads. The caller holds txMu.
func (w *wire) isStuck(err error) bool {
	if err == transport.ErrBusy { //nolint:errorlint // the very value, on the data path
		return w.still.refused(w.taken, time.Now())
	}
	return errors.Is(err, transport.ErrInterfaceDown) || isGone(err)
}

// isGone reports whether an error of the wire's is for good.
func isGone(err error) bool {
	return errors.Is(err, transport.ErrClosed) || errors.Is(err, transport.ErrNoInterface)
}

// sendWire sends the first frames that are for the wire: at least one. Stations of this host get
// their copies of multicasts once the wire has taken these.
func (l *Link) sendWire(t *table, frames []transport.Frame) (int, error) {
	n := 1
	for n < len(frames) && l.byWire(t, &frames[n]) {
		n++
	}
	n, err := l.wire.link.Send(frames[:n])
	l.wire.taken += uint64(n)
	for i := range frames[:n] {
		if frames[i].Dst.IsMulticast() {
			l.copyToAll(t, &frames[i])
		}
	}
	return n, err
}

// byWire reports whether a frame goes by the wire, which refuses it if it cannot be sent.
func (l *Link) byWire(t *table, f *transport.Frame) bool {
	return f.Dst.IsMulticast() || l.station(t, f.Dst) == nil
}
