package fault

import (
	"github.com/rawlane/rawlane/internal/impair"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// decide draws what happens to a received frame. It reports whether f, perhaps altered, is
// delivered now. The lock is held.
func (l *Link) decide(now monotime.Time, f *transport.Frame) bool {
	l.counts.Received++
	if l.cut.Load() {
		l.counts.Cut++
		return false
	}
	if l.cfg.Match != nil && !l.cfg.Match(f) {
		return true
	}
	i := l.model.Draw(&l.rng)
	if i.Lost {
		l.counts.Lost++
		return false
	}
	if i.Duplicated {
		l.counts.Duplicated++
		copied := l.delayed.copyOf(f)
		copied.due = now // behind the frames of this Poll
		l.enqueue(copied)
	}
	altered := l.alter(f, i)
	if i.Delayed || i.Reordered {
		l.delay(now, f, altered, i)
		return false
	}
	if altered != nil {
		*f = l.delayed.lend(altered)
	}
	return true
}

// alter returns a shortened or corrupted copy of f, or nil if neither happens.
func (l *Link) alter(f *transport.Frame, i impair.Impairments) *delayedFrame {
	if len(f.Payload) == 0 || !i.Truncated && !i.Corrupted {
		return nil
	}
	d := l.delayed.copyOf(f)
	payload := d.frame.Payload
	if i.Truncated {
		l.counts.Truncated++
		payload = payload[:l.rng.Below(len(payload))]
	}
	if i.Corrupted && len(payload) > 0 {
		l.counts.Corrupted++
		payload[l.rng.Below(len(payload))] ^= 1 << l.rng.Below(8)
	}
	d.frame.Payload = payload
	return d
}

// delay puts a frame into the delay queue: its altered copy, if there is one.
func (l *Link) delay(now monotime.Time, f *transport.Frame, altered *delayedFrame, i impair.Impairments) {
	d := altered
	if d == nil {
		d = l.delayed.copyOf(f)
	}
	if i.Delayed {
		l.counts.Delayed++
		span := l.cfg.DelayMax - l.cfg.DelayMin
		d.due = now.Add(l.cfg.DelayMin + l.rng.UpTo(span+1) - 1)
	} else {
		l.counts.Reordered++
		by := l.cfg.ReorderBy
		if by == 0 {
			by = DefaultReorderBy
		}
		d.overtakers = 1 + l.rng.Below(by)
		d.due = now.Add(ReorderTimeout)
	}
	l.enqueue(d)
}

func (l *Link) enqueue(d *delayedFrame) {
	if !l.delayed.push(d) {
		l.counts.Overflowed++
	}
}
