package fault

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// decide draws what happens to a received frame. It reports whether f, perhaps altered, is
// delivered now. The lock is held.
//
// Random numbers are drawn in a fixed order, and only for faults that the Config has: what a seed
// leads to changes only where the Config does.
func (l *Link) decide(now monotime.Time, f *transport.Frame) bool {
	l.counts.Received++
	switch {
	case l.cut.Load():
		l.counts.Cut++
		return false
	case l.cfg.Match != nil && !l.cfg.Match(f):
		return true
	case l.happens(l.cfg.Loss):
		l.counts.Lost++
		return false
	}
	if l.happens(l.cfg.Duplicate) {
		l.counts.Duplicated++
		copied := l.delayed.copyOf(f)
		copied.due = now // behind the frames of this Poll
		l.enqueue(copied)
	}
	altered := l.alter(f)
	if d := l.delay(now, f, altered); d != nil {
		l.enqueue(d)
		return false
	}
	if altered != nil {
		*f = l.delayed.lend(altered)
	}
	return true
}

// alter returns a shortened or corrupted copy of f, or nil if neither happens.
func (l *Link) alter(f *transport.Frame) *delayedFrame {
	if len(f.Payload) == 0 {
		return nil
	}
	truncate, corrupt := l.happens(l.cfg.Truncate), l.happens(l.cfg.Corrupt)
	if !truncate && !corrupt {
		return nil
	}
	d := l.delayed.copyOf(f)
	payload := d.frame.Payload
	if truncate {
		l.counts.Truncated++
		payload = payload[:l.rng.IntN(len(payload))]
	}
	if corrupt && len(payload) > 0 {
		l.counts.Corrupted++
		payload[l.rng.IntN(len(payload))] ^= 1 << l.rng.IntN(8)
	}
	d.frame.Payload = payload
	return d
}

// delay draws whether a frame is delayed or reordered. It returns the frame's copy (altered, if
// there is that one already) with its due time, or nil.
func (l *Link) delay(now monotime.Time, f *transport.Frame, altered *delayedFrame) *delayedFrame {
	delay := l.happens(l.cfg.Delay)
	reorder := !delay && l.happens(l.cfg.Reorder)
	if !delay && !reorder {
		return nil
	}
	d := altered
	if d == nil {
		d = l.delayed.copyOf(f)
	}
	if delay {
		l.counts.Delayed++
		span := uint64(l.cfg.DelayMax - l.cfg.DelayMin)
		d.due = now.Add(l.cfg.DelayMin + time.Duration(l.rng.Uint64N(span+1)))
		return d
	}
	l.counts.Reordered++
	by := l.cfg.ReorderBy
	if by == 0 {
		by = DefaultReorderBy
	}
	d.overtakers = 1 + l.rng.IntN(by)
	d.due = now.Add(ReorderTimeout)
	return d
}

// happens draws whether something of that probability happens.
func (l *Link) happens(probability float64) bool {
	return probability > 0 && l.rng.Float64() < probability
}

func (l *Link) enqueue(d *delayedFrame) {
	if !l.delayed.push(d) {
		l.counts.Overflowed++
	}
}
