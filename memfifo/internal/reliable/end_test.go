package reliable

import (
	"github.com/rawlane/rawlane/internal/monotime"
)

const none = ^uint32(0)

// headroom is the length of a driver's header.
const headroom = 14

// end is one end of a connection, with a program that sends numbered records and checks those that
// arrive.
type end struct {
	*model
	c          *Conn
	frames     [MaxBatch][]byte
	pool       *pool
	size       int
	node, peer int
	out, in    [Lanes]uint32 // streams
	holds      func(l Lane) bool
	restarts   int // events PeerRestarted
	byes       int // events PeerClosed
	failures   int
	event      Event // the last one of Advance other than Nothing
}

func (m *model) newEnd(node, peer, size int, life, start uint32) *end {
	e := &end{model: m, size: size, pool: newPool(headroom + size), node: node, peer: peer, holds: func(Lane) bool { return false }}
	e.c = New(Config{
		Incarnation: life, FrameSize: size, Headroom: headroom, PeerTimeout: DefaultPeerTimeout, InitialSequence: start,
		Alloc: e.pool.alloc, Free: e.pool.free, Counters: new(Counters),
	})
	e.newStreams()
	return e
}

// newStreams begins new streams, after a failure.
func (e *end) newStreams() {
	for l := range Lane(Lanes) {
		e.in[l], e.out[l] = none, e.newStream(e.node, e.peer, l)
	}
}

// write sends a record of n bytes, if there is room.
func (e *end) write(now monotime.Time, l Lane, n int) bool {
	b := e.c.Reserve(l, n)
	if b != nil {
		e.model.write(b, e.out[l])
	}
	return b != nil
}

// next returns frames to send, with headroom. They are valid until the next call.
func (e *end) next(now monotime.Time) [][]byte {
	frames := e.frames[:e.c.NextBatch(now, &e.frames)]
	for _, b := range frames {
		clear(b[:headroom]) // a driver may write there
	}
	return frames
}

// receive takes a frame.
func (e *end) receive(now monotime.Time, b []byte) {
	var h Header
	if err := Parse(b, &h); err != nil {
		e.fail("%v: %x", err, b)
		return
	}
	switch e.c.Handle(now, &h, b[HeaderLen:]) {
	case Deliver:
		e.deliver(h.Lane, b[HeaderLen:])
		e.deliverBuffered(h.Lane)
	case PeerRestarted:
		e.restarts++
		e.newStreams()
	case PeerClosed:
		e.byes++
		e.newStreams()
	}
}

// deliver reads a frame's records, until it holds the lane.
func (e *end) deliver(l Lane, b []byte) {
	for len(b) > 0 {
		if e.holds(l) {
			e.c.Hold(l, b)
			return
		}
		b = e.read(e, l, b)
	}
	e.c.Delivered(l)
}

// deliverBuffered goes on with the frames that arrived out of order.
func (e *end) deliverBuffered(l Lane) {
	for e.wrong == "" && e.c.lanes[l].rest == nil {
		b, ok := e.c.Buffered(l)
		if !ok {
			return
		}
		e.deliver(l, b)
	}
}

// resume goes on with a held lane.
func (e *end) resume(l Lane) {
	if b, ok := e.c.Buffered(l); ok {
		e.deliver(l, b)
		e.deliverBuffered(l)
	}
}

// advance does what is due.
func (e *end) advance(now monotime.Time) {
	if event := e.c.Advance(now); event != Nothing {
		e.event = event
		e.failures++
		e.newStreams()
	}
}

// done reports whether the peer has acknowledged everything.
func (e *end) done() bool { return e.c.AllAcked(Requests) && e.c.AllAcked(Replies) }

// check tests the invariants.
func (e *end) check() {
	if e.pool.wrong != "" {
		e.fail("%d to %d: %s", e.node, e.peer, e.pool.wrong)
	}
	if w := e.c.broken(); w != "" {
		e.fail("%d to %d: %s", e.node, e.peer, w)
	}
	if len(e.pool.out) > Lanes*(Window+ReorderWindow) {
		e.fail("%d to %d: %d buffers are out", e.node, e.peer, len(e.pool.out))
	}
}
