package reliable

import (
	"github.com/rawlane/rawlane/internal/monotime"
)

const none = ^uint32(0)

// headroom is the length of a driver's header.
const headroom = 14

// end is a node's end of a connection, with a program that sends numbered records and checks
// those it takes.
type end struct {
	*model
	c          *Conn
	frames     [MaxBatch][]byte
	pool       *pool
	size       int
	node, peer int
	out, in    [Lanes]uint32 // streams
	holds      func(l Lane) bool
	restarts   int // events Restarted
	lefts      int // events Left
	downs      int
	event      Event // the last one of Advance but Nothing
}

func (m *model) newEnd(node, peer, size int, life, start uint32) *end {
	e := &end{model: m, size: size, pool: newPool(headroom + size), node: node, peer: peer, holds: func(Lane) bool { return false }}
	e.c = New(Config{Incarnation: life, FrameSize: size, Headroom: headroom, InitialSequence: start, Alloc: e.pool.alloc, Free: e.pool.free})
	e.anew()
	return e
}

// anew begins new streams.
func (e *end) anew() {
	for l := range Lane(Lanes) {
		e.in[l], e.out[l] = none, e.open(e.node, e.peer, l)
	}
}

// write sends a record of n bytes, if there is room.
func (e *end) write(now monotime.Time, l Lane, n int) bool {
	b := e.c.Reserve(now, l, n)
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

// hear takes a frame.
func (e *end) hear(now monotime.Time, b []byte) {
	var h Header
	if err := Parse(b, &h); err != nil {
		e.fail("%v", err)
		return
	}
	switch e.c.Handle(now, &h, b[HeaderLen:]) {
	case Deliver:
		e.take(h.Lane, b[HeaderLen:])
		e.follow(h.Lane)
	case PeerRestarted:
		e.restarts++
		e.anew()
	case PeerClosed:
		e.lefts++
		e.anew()
	}
}

// take takes a frame's records, or some of them.
func (e *end) take(l Lane, b []byte) {
	for len(b) > 0 {
		if e.holds(l) {
			e.c.Hold(l, b)
			return
		}
		b = e.read(e, l, b)
	}
	e.c.Delivered(l)
}

// follow takes what is next and was here before.
func (e *end) follow(l Lane) {
	for e.wrong == "" && !e.c.Held(l) {
		b, ok := e.c.Buffered(l)
		if !ok {
			return
		}
		e.take(l, b)
	}
}

// resume goes on with a lane that is held.
func (e *end) resume(l Lane) {
	if b, ok := e.c.Buffered(l); ok {
		e.take(l, b)
		e.follow(l)
	}
}

// advance does what is due.
func (e *end) advance(now monotime.Time) {
	if event := e.c.Advance(now); event != Nothing {
		e.event = event
		e.downs++
		e.anew()
	}
}

// done reports whether all that was sent was acknowledged.
func (e *end) done() bool { return e.c.AllAcked(Requests) && e.c.AllAcked(Replies) }

// check looks at the invariants.
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
