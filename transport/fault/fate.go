package fault

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// pass decides what becomes of a frame, and reports whether f, perhaps altered, is delivered now. The lock is held.
//
// Chance is drawn in a fixed order, and only for faults that the Config has: so a seed's story changes only
// where the Config does.
func (l *Link) pass(now monotime.Time, f *transport.Frame) bool {
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
		twin := l.held.copyOf(f)
		twin.due = now // behind the frames of this Poll
		l.hold(twin)
	}
	p := l.alter(f)
	late := l.detain(now, f, &p)
	switch {
	case late:
		l.hold(p)
		return false
	case p != nil:
		*f = l.held.lend(p)
	}
	return true
}

// alter returns a shortened or corrupted copy of f, or nil if neither happens.
func (l *Link) alter(f *transport.Frame) (p *parcel) {
	if len(f.Payload) == 0 {
		return nil
	}
	truncate, corrupt := l.happens(l.cfg.Truncate), l.happens(l.cfg.Corrupt)
	if !truncate && !corrupt {
		return nil
	}
	p = l.held.copyOf(f)
	if truncate {
		l.counts.Truncated++
		p.frame.Payload = p.frame.Payload[:l.rng.IntN(len(p.frame.Payload))]
	}
	if corrupt && len(p.frame.Payload) > 0 {
		l.counts.Corrupted++
		p.frame.Payload[l.rng.IntN(len(p.frame.Payload))] ^= 1 << l.rng.IntN(8)
	}
	return p
}

// detain decides whether a frame is held back, and until when: then *p, the copy of it, is made if there is none.
func (l *Link) detain(now monotime.Time, f *transport.Frame, p **parcel) bool {
	delay := l.happens(l.cfg.Delay)
	reorder := !delay && l.happens(l.cfg.Reorder)
	if !delay && !reorder {
		return false
	}
	if *p == nil {
		*p = l.held.copyOf(f)
	}
	if delay {
		l.counts.Delayed++
		span := uint64(l.cfg.DelayMax - l.cfg.DelayMin)
		(*p).due = now.Add(l.cfg.DelayMin + time.Duration(l.rng.Uint64N(span+1)))
		return true
	}
	l.counts.Reordered++
	by := l.cfg.ReorderBy
	if by == 0 {
		by = DefaultReorderBy
	}
	(*p).behind = 1 + l.rng.IntN(by)
	(*p).due = now.Add(ReorderPatience)
	return true
}

// happens draws whether something of that probability happens.
func (l *Link) happens(probability float64) bool {
	return probability > 0 && l.rng.Float64() < probability
}

func (l *Link) hold(p *parcel) {
	if !l.held.hold(p) {
		l.counts.Overflowed++
	}
}
