package fault

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/transport"
)

// Link is a link with faults. What it does not do itself the link inside does; so its Counters are of the frames
// that the link inside sent and received, and Counts tells what became of those.
type Link struct {
	transport.Link
	quieter transport.WakeupMasker // the link inside, if it is one
	cut     atomic.Bool
	closed  atomic.Bool

	mu       sync.Mutex // guards what follows; taken before locks of the link inside
	rng      *rand.Rand
	cfg      Config
	counts   Counts
	held     holding
	quiet    bool
	sleepers []*sleeper
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Wrapper      = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
)

// New puts faults around inner. rng belongs to the link from now on. Errors: no rng; a field of cfg out of range.
func New(inner transport.Link, rng *rand.Rand, cfg Config) (*Link, error) {
	if rng == nil {
		return nil, errors.New("fault: no source of chance (want rand.New(rand.NewPCG(seed, 0)))")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Link{Link: inner, rng: rng, cfg: cfg}
	l.quieter, _ = transport.As[transport.WakeupMasker](inner)
	return l, nil
}

// Unwrap returns the link inside: it makes Link a transport.Wrapper.
func (l *Link) Unwrap() transport.Link { return l.Link }

// SetConfig changes what happens from the next Poll on; what is held back already comes when it was to. If it
// returns an error, a field of cfg out of range, nothing has changed.
func (l *Link) SetConfig(cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg = cfg
	return nil
}

// Cut cuts the cable, or heals it. While it is cut, what is sent and what arrives is lost, in silence. Frames that
// arrived before and are held back still come: the wire is behind them.
func (l *Link) Cut(cut bool) { l.cut.Store(cut) }

// Counts returns what happened so far.
func (l *Link) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Send sends frames by the link inside, or loses them if the cable is cut.
func (l *Link) Send(frames []transport.Frame) (int, error) {
	if !l.cut.Load() || l.closed.Load() {
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

// Poll returns frames that are due, and those of the link inside that no fault holds back. Payloads that were
// altered or held back are views of this link's memory, the others of the link's inside: all are valid until the
// next Poll or Close.
func (l *Link) Poll(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held.reclaim()
	if _, held := l.held.next(); !held && l.cfg.idle() && !l.cut.Load() {
		n, err := l.Link.Poll(frames)
		l.counts.Received += uint64(n)
		l.counts.Delivered += uint64(n)
		return n, err
	}
	n, err := l.poll(frames)
	l.counts.Delivered += uint64(n)
	return n, err
}

// poll is Poll where something may happen to frames.
func (l *Link) poll(frames []transport.Frame) (n int, err error) {
	now := clock.Now()
	n = l.held.take(now, frames)
	first, held := l.held.next()
	came := n
	got, err := l.Link.Poll(frames[came:])
	for i := range got {
		if f := &frames[came+i]; l.pass(now, f) {
			frames[n] = *f // moves up to where others did not pass
			n++
			l.held.overtake(now)
		}
	}
	n += l.held.take(now, frames[n:])
	if next, any := l.held.next(); any && !l.quiet && (!held || next.Before(first)) {
		l.wakeAll()
	}
	return n, err
}

// Close closes the link inside; what is held back is lost.
func (l *Link) Close() error {
	l.closed.Store(true)
	err := l.Link.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = holding{}
	l.wakeAll()
	return err
}
