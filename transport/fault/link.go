package fault

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/mono"
	"github.com/rawlane/rawlane/transport"
)

// Link is a link with faults. What it does not do itself the link inside does.
type Link struct {
	transport.Link
	cut atomic.Bool

	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	cfg    Config
	counts Counts
	held   []*parcel // to be delivered, in the order in which they came
	lent   []*parcel // delivered by the last Poll: their memory is the caller's until the next
	spare  []*parcel
	in     []transport.Frame

	changed context.Context // ends when held gets a frame, so that a Wait looks anew
	change  context.CancelFunc
}

// parcel is a copy of a frame.
type parcel struct {
	frame  transport.Frame
	memory []byte
	due    mono.Time
	behind int // frames that it still lets pass; then it is due
}

// New puts faults around inner. rng belongs to the link from now on. Errors: a field of cfg out of range.
func New(inner transport.Link, rng *rand.Rand, cfg Config) (*Link, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Link{Link: inner, rng: rng, cfg: cfg}
	l.changed, l.change = context.WithCancel(context.Background())
	return l, nil
}

// Unwrap returns the link inside: it makes Link a transport.Wrapper.
func (l *Link) Unwrap() transport.Link { return l.Link }

// SetConfig changes what happens from now on. Frames that are held back come when they are due.
func (l *Link) SetConfig(cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = cfg
	return nil
}

// Cut cuts the cable, or heals it: while it is cut, what is sent and what arrives is lost, in silence.
func (l *Link) Cut(cut bool) { l.cut.Store(cut) }

// Counts returns what happened so far.
func (l *Link) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Send sends frames by the link inside, or loses them if the cable is cut.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	if !l.cut.Load() {
		return l.Link.Send(frames)
	}
	mtu := l.MTU()
	for i := range frames { // what could not be sent anyway is refused all the same
		if err := transport.CheckFrame(&frames[i], mtu); err != nil {
			return l.lose(i), err
		}
	}
	return l.lose(len(frames)), nil
}

func (l *Link) lose(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Cut += uint64(n)
	return n
}

// Poll returns frames that are due, and those of the link inside to which nothing happens.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare, l.lent = append(l.spare, l.lent...), l.lent[:0]
	if l.cfg.idle() && !l.cut.Load() && len(l.held) == 0 {
		n, err := l.Link.Poll(frames)
		l.counts.Received += uint64(n)
		l.counts.Delivered += uint64(n)
		return n, err
	}
	now := clock.Now()
	n := l.deliverDue(now, frames, 0)
	if len(l.in) < len(frames) {
		l.in = make([]transport.Frame, len(frames))
	}
	// One frame can become two: those for which there is no room are held.
	got, err := l.Link.Poll(l.in[:len(frames)-n])
	for i := range l.in[:got] {
		if l.pass(now, &l.in[i]) {
			frames[n] = l.in[i]
			n++
			l.overtake(now)
		}
	}
	n = l.deliverDue(now, frames, n)
	l.counts.Delivered += uint64(n)
	return n, err
}

// pass decides what happens to a frame, and reports whether it is delivered now and as it is.
func (l *Link) pass(now mono.Time, f *transport.Frame) bool {
	l.counts.Received++
	switch {
	case l.cut.Load():
		l.counts.Cut++
		return false
	case l.cfg.Match != nil && !l.cfg.Match(f):
		return true
	case l.happens(l.cfg.Loss, &l.counts.Lost):
		return false
	}
	if l.happens(l.cfg.Duplicate, &l.counts.Duplicated) {
		l.hold(now, f)
	}
	if p := l.alter(f); p != nil {
		l.enqueue(p, now)
		return false
	}
	return true
}

// alter returns the frame as a parcel, if anything happens to it.
func (l *Link) alter(f *transport.Frame) *parcel {
	some := len(f.Payload) > 0
	truncate := some && l.happens(l.cfg.Truncate, &l.counts.Truncated)
	corrupt := some && l.happens(l.cfg.Corrupt, &l.counts.Corrupted)
	delay := l.happens(l.cfg.Delay, &l.counts.Delayed)
	reorder := l.happens(l.cfg.Reorder, &l.counts.Reordered)
	if !truncate && !corrupt && !delay && !reorder {
		return nil
	}
	p := l.parcel(f)
	if truncate {
		p.frame.Payload = p.frame.Payload[:l.rng.IntN(len(p.frame.Payload))]
	}
	if corrupt && len(p.frame.Payload) > 0 {
		p.frame.Payload[l.rng.IntN(len(p.frame.Payload))] ^= 1 << l.rng.IntN(8)
	}
	if delay {
		p.due = p.due.Add(l.cfg.DelayMin + time.Duration(l.rng.Int64N(int64(l.cfg.DelayMax-l.cfg.DelayMin)+1)))
	}
	if reorder {
		by := l.cfg.ReorderBy
		if by == 0 {
			by = DefaultReorderBy
		}
		p.behind = 1 + l.rng.IntN(by)
		p.due = p.due.Add(ReorderPatience)
	}
	return p
}

func (l *Link) happens(probability float64, count *uint64) bool {
	if probability == 0 || l.rng.Float64() >= probability {
		return false
	}
	*count++
	return true
}

// parcel copies a frame. Its due time is relative until it is enqueued.
func (l *Link) parcel(f *transport.Frame) *parcel {
	var p *parcel
	if n := len(l.spare); n > 0 {
		p, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		p = new(parcel)
	}
	p.memory = append(p.memory[:0], f.Payload...)
	p.frame, p.due, p.behind = *f, mono.Time{}, 0
	p.frame.Payload = p.memory
	return p
}

// hold keeps a copy of a frame that is due at once.
func (l *Link) hold(now mono.Time, f *transport.Frame) { l.enqueue(l.parcel(f), now) }

func (l *Link) enqueue(p *parcel, now mono.Time) {
	if len(l.held) >= MaxHeld {
		l.counts.Overflowed++
		l.spare = append(l.spare, p)
		return
	}
	p.due = now.Add(p.due.Since())
	l.held = append(l.held, p)
	l.change()
	l.changed, l.change = context.WithCancel(context.Background())
}

// overtake tells the frames that are held back to be reordered that another one has passed.
func (l *Link) overtake(now mono.Time) {
	for _, p := range l.held {
		if p.behind > 0 {
			if p.behind--; p.behind == 0 {
				p.due = now
			}
		}
	}
}

// deliverDue appends held frames that are due to the first n of frames.
func (l *Link) deliverDue(now mono.Time, frames []transport.Frame, n int) int {
	kept := l.held[:0]
	for _, p := range l.held {
		if n == len(frames) || p.due.After(now) {
			kept = append(kept, p)
			continue
		}
		frames[n] = p.frame
		n++
		l.lent = append(l.lent, p)
	}
	clear(l.held[len(kept):])
	l.held = kept
	return n
}

// Wait waits for the link inside, or until a frame that is held back is due.
func (l *Link) Wait(ctx context.Context) error {
	for {
		due, changed, any := l.next()
		if any && !due.After(clock.Now()) {
			return ctx.Err()
		}
		switch err := l.waitInside(ctx, due, changed, any); {
		case ctx.Err() != nil:
			return ctx.Err()
		case !isOurs(err):
			return err
		}
	}
}

// isOurs reports whether a wait ended because of a context of ours.
func isOurs(err error) bool { return err == context.DeadlineExceeded || err == context.Canceled } //nolint:errorlint // the very values

func (l *Link) waitInside(ctx context.Context, due mono.Time, changed context.Context, any bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(changed, cancel)()
	if any {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, due.Sub(clock.Now()))
		defer stop()
	}
	return l.Link.Wait(ctx)
}

// next returns when the next held frame is due, and what ends when that changes.
func (l *Link) next() (due mono.Time, changed context.Context, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.held {
		if !any || p.due.Before(due) {
			due, any = p.due, true
		}
	}
	return due, l.changed, any
}

// Close closes the link inside; what is held back is lost.
func (l *Link) Close() error {
	err := l.Link.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = nil
	l.change()
	l.changed, l.change = context.WithCancel(context.Background())
	return err
}
