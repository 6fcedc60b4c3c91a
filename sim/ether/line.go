package ether

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// line is one direction of a cable: the queue of the sending port, the wire, and the receiver at
// its end.
//
// A line serves frames in order and at one rate, so the arrival of a frame is known when it is
// queued. The queue is a single number, the instant at which the line falls idle, and a frame costs
// one event, its arrival.
//
//	now        idleAt                arrival
//	 |--wait---->|##frame##|--latency-->|
//	 |<- at most queueLimit ->|
type line struct {
	byteTime   int64         // of one byte, in femtoseconds
	queueLimit int64         // what may wait, with the frame being sent, in femtoseconds
	latency    time.Duration // of the wire and of the receiver
	idleAt     int64         // femtoseconds from the origin; in the past, too
	inFlight   ring          // queued or on the wire
	dropped    uint64        // frames that found the queue full
	arrive     func()        // the event: the first frame in flight has arrived
}

// femto is how many femtoseconds a nanosecond has. 2^63 of them are two and a half hours. Clocks
// that differ by millionths need so fine a unit.
const femto = 1_000_000

// send queues f at instant now, and returns when it will arrive, unless the queue is full.
func (l *line) send(now monotime.Time, f *frame) (arrival monotime.Time, taken bool) {
	at := int64(now.Since()) * femto
	size := f.wireBytes()
	start := max(at, l.idleAt)
	end := start + size*l.byteTime
	if end-at > l.queueLimit {
		l.dropped++
		return monotime.Time{}, false
	}
	l.idleAt = end
	l.inFlight.push(f)
	return monotime.At(time.Duration((end+femto-1)/femto) + l.latency), true
}

// ring is a growing FIFO of frames.
type ring struct {
	frames      []frame // a power of two of them
	first, next uint    // frames[first&mask:next&mask]
}

func (r *ring) len() int { return int(r.next - r.first) }

func (r *ring) push(f *frame) {
	if r.len() == len(r.frames) {
		r.grow()
	}
	r.frames[r.next&uint(len(r.frames)-1)] = *f
	r.next++
}

// pop removes the first frame. There must be one.
func (r *ring) pop() frame {
	f := r.frames[r.first&uint(len(r.frames)-1)]
	r.first++
	return f
}

func (r *ring) grow() {
	more := make([]frame, max(16, 2*len(r.frames)))
	for i := range r.len() {
		more[i] = r.frames[(r.first+uint(i))&uint(len(r.frames)-1)]
	}
	r.frames, r.first, r.next = more, 0, uint(r.len())
}
