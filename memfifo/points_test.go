package memfifo_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// The marked points of the links under TestModel: what a driver and a card may do, and seldom do.
// Nothing that a program sees may change. bench/campaign wants each of them hit.
const (
	sentInPart     = "batch sent in part"
	busyForLong    = "link busy for long"
	outOfBuffers   = "send out of buffers"
	interfaceDown  = "interface down for a while"
	lowerMTU       = "MTU lower for a while"
	routeChanged   = "route changed in the middle of a batch"
	waitEndsEarly  = "wait ends early"
	waitEndsLate   = "wait ends late"
	wakeUpTwice    = "wake-up twice"
	pollOfOne      = "poll of one frame"
	pollOfNothing  = "poll of nothing"
	fullBatch      = "poll of a full batch"
	memoryReused   = "memory of a batch reused at once"
	halfWritten    = "frame half written"
	truncatedFrame = "frame cut off"
)

// points are how often each marked point was hit, by all links of a run.
type points struct {
	mu  sync.Mutex
	hit map[string]uint64
}

func newPoints() *points {
	p := &points{hit: map[string]uint64{}}
	for _, name := range []string{
		sentInPart, busyForLong, outOfBuffers, interfaceDown, lowerMTU, routeChanged, waitEndsEarly, waitEndsLate,
		wakeUpTwice, pollOfOne, pollOfNothing, fullBatch, memoryReused, halfWritten, truncatedFrame,
	} {
		p.hit[name] = 0 // one that is never hit shows
	}
	return p
}

func (p *points) add(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hit[name]++
}

// erringLink is a link that errs at marked points.
type erringLink struct {
	transport.Link
	points *points
	table  *vlan.Table // the endpoint's router
	closed chan struct{}

	mu        sync.Mutex // guards what follows
	rng       *rand.Rand
	busyUntil time.Time // Send has no room
	lowUntil  time.Time // the MTU is half of what it was
	downUntil time.Time // the interface is down
	again     bool      // Wait ends once more, for nothing
	lent      [][]byte  // memory of the last Poll's payloads, which is written to at the next one
}

var _ transport.Wrapper = (*erringLink)(nil)

func newErringLink(inner transport.Link, p *points, table *vlan.Table, rng *rand.Rand) *erringLink {
	return &erringLink{Link: inner, points: p, table: table, closed: make(chan struct{}), rng: rng}
}

// Unwrap implements transport.Wrapper.
func (l *erringLink) Unwrap() transport.Link { return l.Link }

// hits reports whether a point is to misbehave now, and counts it. The lock is held.
func (l *erringLink) hits(point string, p float64) bool {
	if l.rng.Float64() >= p {
		return false
	}
	l.points.add(point)
	return true
}

func (l *erringLink) upTo(d time.Duration) time.Duration {
	return time.Duration(1 + l.rng.Int64N(int64(d)))
}

// Send sends some of the frames, or none, with the errors that a link has for that.
func (l *erringLink) Send(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	take, err := l.admit(frames)
	l.mu.Unlock()
	n, sendErr := l.Link.Send(frames[:take])
	if sendErr != nil {
		return n, sendErr
	}
	return n, err
}

// admit returns how many of the frames go, and why the next one does not.
func (l *erringLink) admit(frames []transport.Frame) (take int, err error) {
	now, n := time.Now(), len(frames)
	switch {
	case now.Before(l.downUntil):
		return 0, transport.ErrInterfaceDown
	case now.Before(l.busyUntil):
		return 0, transport.ErrBusy
	case now.Before(l.lowUntil):
		for i := range frames {
			if size := len(frames[i].Payload); size > l.MTU()/2 {
				return i, &transport.SizeError{Size: size, Max: l.MTU() / 2}
			}
		}
		return n, nil
	case n > 1 && l.hits(sentInPart, .05):
		return 1 + l.rng.IntN(n-1), transport.ErrBusy
	case l.hits(busyForLong, .002):
		l.busyUntil = now.Add(l.upTo(20 * time.Millisecond))
		return l.rng.IntN(n + 1), transport.ErrBusy
	case l.hits(outOfBuffers, .005):
		return l.rng.IntN(n), syscall.ENOBUFS
	case l.hits(interfaceDown, .001):
		l.downUntil = now.Add(l.upTo(50 * time.Millisecond))
		return 0, transport.ErrInterfaceDown
	case l.hits(lowerMTU, .001):
		l.lowUntil = now.Add(l.upTo(10 * time.Millisecond))
	case l.hits(routeChanged, .01):
		l.changeRoute()
	}
	return n, nil
}

// changeRoute gives all destinations another VLAN, or none.
func (l *erringLink) changeRoute() {
	var routes []vlan.Route
	if l.rng.IntN(4) > 0 {
		tag := transport.Tag{VID: transport.VID(1 + l.rng.IntN(100)), PCP: transport.PCP(l.rng.IntN(8))}
		routes = []vlan.Route{{Dst: transport.Broadcast, OptionalTag: transport.Tagged(tag)}}
	}
	if err := l.table.Replace(routes); err != nil {
		panic(err) // the tag is in range
	}
}

// Poll returns fewer frames than there are, or none, or altered ones, or all that there is room for,
// most of them twice; each as views of memory that is written to at the next Poll.
func (l *erringLink) Poll(frames []transport.Frame) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.lent {
		for i := range b {
			b[i] = 0xdb
		}
	}
	l.lent = l.lent[:0]
	now := time.Now()
	switch {
	case now.Before(l.downUntil):
		return 0, nil
	case l.hits(pollOfNothing, .02):
		return 0, nil
	case l.hits(pollOfOne, .05):
		frames = frames[:min(len(frames), 1)]
	}
	n, err := l.Link.Poll(frames)
	if n > 0 && l.hits(fullBatch, .01) {
		for i := n; i < len(frames); i++ {
			frames[i] = frames[i%n]
		}
		n = len(frames)
	}
	reused := n > 0 && l.hits(memoryReused, .2)
	for i := range n {
		l.alter(&frames[i], reused)
	}
	return n, err
}

// alter spoils a frame, or moves it to memory of the link's own.
func (l *erringLink) alter(f *transport.Frame, reused bool) {
	cut := len(f.Payload) > 1 && l.hits(truncatedFrame, .005)
	half := len(f.Payload) > 1 && !cut && l.hits(halfWritten, .005)
	if !reused && !cut && !half {
		return
	}
	b := append([]byte(nil), f.Payload...)
	l.lent = append(l.lent, b)
	f.Payload = b
	switch {
	case cut:
		f.Payload = b[:l.rng.IntN(len(b))]
	case half:
		clear(b[len(b)/2:])
	}
}

// Wait ends early, late or once too often, and with an error while the interface is down.
func (l *erringLink) Wait(ctx context.Context) error {
	l.mu.Lock()
	down, again := time.Until(l.downUntil), l.again
	early := !again && l.hits(waitEndsEarly, .02)
	l.again = false
	l.mu.Unlock()
	switch {
	case down > 0:
		return transport.ErrInterfaceDown
	case again || early:
		return nil
	}
	if err := l.Link.Wait(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	late := time.Duration(0)
	if l.hits(waitEndsLate, .01) {
		late = l.upTo(3 * time.Millisecond)
	}
	l.again = l.hits(wakeUpTwice, .02)
	l.mu.Unlock()
	return l.sleep(ctx, late)
}

// sleep sleeps for as long as d. Channels of timers that are due when they are looked at make the
// race detector crash, if two goroutines of a bubble look at once (Go 1.26): 0 has none.
func (l *erringLink) sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.closed:
		return transport.ErrClosed
	}
}

// Close ends the sleep of a Wait, too.
func (l *erringLink) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return l.Link.Close()
}
