package fault

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/impair"
	"github.com/rawlane/rawlane/internal/prng"
	"github.com/rawlane/rawlane/transport"
)

// Link is a link with faults. What it does not do itself the inner link does: so Counters are of
// the frames that the inner link sent and received, and Counts says what became of those.
type Link struct {
	transport.Link
	masker transport.WakeupMasker // the inner link, if it is one
	stamps *stampedLink           // likewise
	cut    atomic.Bool
	closed atomic.Bool

	mu      sync.Mutex // guards what follows; taken before locks of the inner link
	rng     prng.Source
	cfg     Config
	model   impair.Model // of cfg
	counts  Counts
	delayed delayQueue
	masked  bool // MaskWakeups
	waits   []*wait
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Wrapper      = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
)

// New puts faults around inner. The link takes its seed from rng.
// Errors: rng is nil; a field of cfg is out of range.
func New(inner transport.Link, rng *rand.Rand, cfg Config) (*Link, error) {
	if rng == nil {
		return nil, errors.New("fault: no random generator (want rand.New(rand.NewPCG(seed, 0)))")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Link{Link: inner, rng: prng.Source(rng.Uint64()), cfg: cfg, model: cfg.model()}
	l.masker, _ = transport.As[transport.WakeupMasker](inner)
	l.stamps = newStampedLink(inner)
	return l, nil
}

// Unwrap implements transport.Wrapper: it returns the inner link, or a wrapper around it if that
// has stamps.
func (l *Link) Unwrap() transport.Link {
	if l.stamps != nil {
		return l.stamps
	}
	return l.Link
}

// SetConfig changes what happens from the next Poll on; frames in the delay queue keep their due
// times. If it returns an error, a field of cfg out of range, nothing has changed.
func (l *Link) SetConfig(cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg, l.model = cfg, cfg.model()
	return nil
}

// Cut cuts the cable, or mends it. While it is cut, frames sent and frames arriving are lost, with
// no error. Frames in the delay queue still come: they arrived before. What the inner link sends
// and takes for itself, as one of package udp does to make stations known, is no frame of this
// link, and passes.
func (l *Link) Cut(cut bool) { l.cut.Store(cut) }

// Counts returns what happened so far.
func (l *Link) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Send sends frames by the inner link, or loses them if the cable is cut.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	if !l.cut.Load() || l.closed.Load() {
		return l.Link.Send(frames)
	}
	mtu := l.MTU()
	for i := range frames { // a frame that could not be sent anyway is refused as always
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

// Poll returns frames that are due, and those of the inner link that are not delayed. Payloads that
// were altered or delayed are views of this link's memory, the others of the inner link's. All are
// valid until the next Poll or Close.
func (l *Link) Poll(frames []transport.Frame) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delayed.reclaim()
	l.stamps.reset()
	if _, some := l.delayed.next(); !some && l.model.IsZero() && !l.cut.Load() {
		n, err = l.Link.Poll(frames)
		l.counts.Received += uint64(n)
		for i := range n {
			l.stamps.add(i)
		}
	} else {
		n, err = l.poll(frames)
	}
	l.counts.Delivered += uint64(n)
	return n, err
}

// poll is Poll where something may happen to frames. It fills frames in this order: delayed frames
// that are due; frames of the inner link, closed up where some do not pass; delayed frames that
// these have overtaken, and duplicates.
func (l *Link) poll(frames []transport.Frame) (n int, err error) {
	now := clock.Now()
	n = l.delayed.pop(now, frames)
	l.stamps.addDelayed(n)
	first, some := l.delayed.next()
	arrived := frames[n:]
	got, err := l.Link.Poll(arrived)
	for i := range got {
		if l.decide(now, &arrived[i]) {
			frames[n] = arrived[i]
			n++
			l.stamps.add(i)
			l.delayed.overtake(now)
		}
	}
	late := l.delayed.pop(now, frames[n:])
	l.stamps.addDelayed(late)
	n += late
	if next, ok := l.delayed.next(); ok && !l.masked && (!some || next.Before(first)) {
		l.wakeAll()
	}
	return n, err
}

// Close closes the inner link. Frames in the delay queue are lost.
func (l *Link) Close() error {
	l.closed.Store(true)
	err := l.Link.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Lost += uint64(len(l.delayed.queued))
	l.delayed = delayQueue{}
	l.wakeAll()
	return err
}
