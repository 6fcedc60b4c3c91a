package reliable

import (
	"cmp"
	"time"

	"github.com/rawlane/rawlane/internal/congestion"
	"github.com/rawlane/rawlane/internal/monotime"
)

// Lane is one of two streams of a connection. A receiver that cannot deliver a lane's next record
// holds that lane, and never the other one.
type Lane = uint8

// The lanes.
const (
	Requests Lane = iota // operations of programs
	Replies              // their answers: always delivered
)

// State of a connection.
type State uint8

// The states.
const (
	Idle State = iota
	Handshaking
	Open
	Closing
)

// Event is the outcome of Handle or Advance.
type Event uint8

// The events.
const (
	Nothing       Event = iota
	Deliver             // the frame's records are next in their lane: process them, then call Delivered or Hold
	PeerRestarted       // the peer has a new incarnation: what was outstanding has failed
	PeerClosed          // the peer has said bye: likewise
	PeerSilent          // the peer has not answered for the peer timeout: likewise
	DataLost            // the peer answers, but no data has reached it for the peer timeout: likewise
)

// Config of a connection.
type Config struct {
	Incarnation     uint32        // random, not 0
	FrameSize       int           // largest frame, in bytes, header included
	SendSize        int           // up to which records share a frame, and data is cut; 0: FrameSize
	Train           int           // how many frames the link sends together; 0: each goes alone
	Headroom        int           // bytes before each frame, for the driver's own header
	PeerTimeout     time.Duration // how long the peer may be silent
	InitialSequence uint32        // at both ends; 0 is 1
	// Alloc returns so many bytes, Headroom + FrameSize at most. Free takes them back. A connection
	// without outstanding frames has none. One that has lost its peer keeps up to ReorderWindow
	// frames a lane until it is used again and fails.
	Alloc    func(n int) Buffer
	Free     func(Buffer)
	Counters *Counters // where the connection counts
}

// bufferLen returns how long a buffer has to be for a frame whose first record has n bytes. Frames
// that go in trains lie side by side, others begin at a cache line each.
func (cfg *Config) bufferLen(n int) int {
	size := cfg.Headroom + max(cfg.SendSize, HeaderLen+n)
	if cfg.Train == 0 {
		size = wholeLines(size)
	}
	return size
}

// Counters of one or more connections, over all incarnations; in frames.
type Counters struct {
	Sent             uint64 `json:"sent"`              // data frames
	Retransmitted    uint64 `json:"retransmitted"`     // of these, not for the first time
	Acks             uint64 `json:"acks"`              // acknowledgements without data
	Delivered        uint64 `json:"delivered"`         // data frames, in order
	OutOfOrder       uint64 `json:"out_of_order"`      // kept behind a gap, or a frame that is held
	Duplicate        uint64 `json:"duplicate"`         // had arrived before
	BeyondWindow     uint64 `json:"beyond_window"`     // too far ahead: dropped
	StaleIncarnation uint64 `json:"stale_incarnation"` // of or for a former incarnation: dropped
	TooLong          uint64 `json:"too_long"`          // longer than FrameSize: dropped
}

// Conn is one end of a connection.
type Conn struct {
	cfg           Config
	state         State
	local, remote uint32 // incarnations; remote is 0 while it is unknown
	lanes         [Lanes]lane
	rtt           congestion.RTT
	silence       retries // without any answer
	ackPolicy     AckPolicy
	handshake
	goodbye

	due       [kinds]bool // control frames to be sent: Hello, HelloAck, Bye and ByeAck
	needsPump bool
	control   []byte           // memory of control frames
	batch     [MaxBatch]Header // of the last NextBatch
}

// lane is both halves of a stream.
type lane struct {
	sender
	receiver
}

// New makes a connection.
func New(cfg Config) *Conn {
	cfg.InitialSequence = cmp.Or(cfg.InitialSequence, 1)
	cfg.SendSize = cmp.Or(cfg.SendSize, cfg.FrameSize)
	c := &Conn{cfg: cfg, local: cfg.Incarnation, control: make([]byte, cfg.Headroom+maxAckLen)}
	c.challenge = 1
	c.resetLanes()
	return c
}

// resetLanes frees all frames and begins at the initial sequence number.
func (c *Conn) resetLanes() {
	for i := range c.lanes {
		l := &c.lanes[i]
		for k := range l.packets {
			if sent := l.packets[k].buf; sent.Bytes != nil {
				c.cfg.Free(sent)
			}
		}
		for _, b := range l.outOfOrder {
			if b.Bytes != nil {
				c.cfg.Free(b)
			}
		}
		*l = lane{}
		l.sender.init(c.cfg.InitialSequence, &c.cfg)
		l.receiver.init(c.cfg.InitialSequence)
	}
	c.rtt = congestion.RTT{}
	c.silence.reset()
}

// reset ends the local incarnation: the peer may have delivered some of what was outstanding, and
// must not deliver the rest.
func (c *Conn) reset() {
	c.local = max(c.local*1664525+1013904223, 1) // any other number
	c.remote, c.state, c.due = 0, Idle, [kinds]bool{}
	c.resetLanes()
}

// AllAcked reports whether the peer has acknowledged all that was reserved in a lane.
func (c *Conn) AllAcked(l Lane) bool { return c.Acked(l, c.Mark(l)) }

// Mark returns the end of a lane: Acked reports whether all before it was acknowledged.
func (c *Conn) Mark(l Lane) uint32 {
	s := &c.lanes[l].sender
	if s.fill > 0 {
		return s.queued + 1
	}
	return s.queued
}

// Acked reports whether the peer has acknowledged all that was reserved before a Mark.
func (c *Conn) Acked(l Lane, mark uint32) bool { return !before(c.lanes[l].una, mark) }

// Deadline returns when to call Advance; ok is false if nothing is due by itself.
func (c *Conn) Deadline() (at monotime.Time, ok bool) {
	earlier := func(t monotime.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if c.state == Handshaking {
		earlier(c.helloDeadline)
	}
	if c.state == Closing && c.byes > 0 {
		earlier(c.byeDeadline)
	}
	if c.state != Open {
		return at, ok
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		if l.awaitsAck() {
			earlier(l.rtoDeadline)
		}
		if tail, set := l.tailDeadline(&c.rtt); set {
			earlier(tail)
		}
		if l.unacked > 0 && !l.ackDue(c.ackPolicy) {
			earlier(l.ackDeadline)
		}
	}
	return at, ok
}

// Advance does what is due. Its event is Nothing, PeerSilent or DataLost.
func (c *Conn) Advance(now monotime.Time) Event {
	event := Nothing
	switch c.state {
	case Handshaking:
		event = c.advanceHandshake(now)
	case Open:
		for i := range c.lanes {
			event = max(event, c.advanceLane(now, &c.lanes[i]))
		}
	case Closing:
		c.advanceGoodbye(now)
	}
	if event != Nothing {
		c.reset()
	}
	return event
}

func (c *Conn) advanceLane(now monotime.Time, l *lane) Event {
	if l.unacked > 0 && !now.Before(l.ackDeadline) {
		l.ackNow = true
	}
	if !l.awaitsAck() || now.Before(l.rtoDeadline) {
		if tail, set := l.tailDeadline(&c.rtt); set && !now.Before(tail) {
			l.onTail(now, &c.rtt)
		}
		return Nothing
	}
	silent := c.silence.expired(now, l.rtoDeadline, c.cfg.PeerTimeout)
	stalled := l.onRTO(now, &c.rtt, c.cfg.PeerTimeout)
	switch {
	case silent, stalled && c.silence.count > minRetries: // of two lanes one may be told a moment before
		return PeerSilent
	case stalled:
		return DataLost
	}
	return Nothing
}

// retries counts deadlines that passed without an answer.
type retries struct {
	count  int
	last   monotime.Time // when the last one was missed; valid if count > 0
	waited time.Duration // from the first missed deadline on
}

func (r *retries) reset() { r.count = 0 }

// expired counts one, and reports whether they are enough to give up. Only the time until the
// deadline counts, not how late this end is to notice: if it was suspended, the answer may be
// here and unread.
func (r *retries) expired(now, deadline monotime.Time, timeout time.Duration) bool {
	if r.count == 0 {
		r.last, r.waited = now, 0
	}
	r.waited += max(deadline.Sub(r.last), 0)
	r.last = now
	r.count++
	return r.count > minRetries && r.waited >= timeout
}
