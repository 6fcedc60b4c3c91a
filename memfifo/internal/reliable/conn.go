// Package reliable delivers frames of records to one peer, each once and in order, over frames that may be lost, doubled, late,
// out of order or of another life. It computes, and does no I/O.
//
//	Reserve ──> frame being filled ──> sent, kept ──> acknowledged          sender, one for each lane
//	                                     │   ^
//	                             lost? ──┘   │ which are here, how many more
//	                                         │
//	Take <── in order <── early ones kept <── frame                         receiver, one for each lane
//
// A connection is in one of three states:
//
//	state     event                              next      sends
//	Idle      something to send                  Greeting  hello
//	Greeting  deadline                           Greeting  hello; then waits twice as long
//	any       hello                              same      welcome; with a question, if the life is not known
//	any       welcome with a question            same      welcome
//	Greeting  welcome that answers               Open      what is queued
//	Idle      welcome that answers               Open      -
//	Open      welcome that answers, another life Open      -; what was under way has failed
//	Open      deadline                           Open      what is not acknowledged, or a question
//	Open      the program leaves                 Open      what it can yet, and a bye; it is for nothing else after that
//	Open      bye                                Idle      -; what was under way has failed, and we begin another life
//	any       a frame of or for another life     same      hello: one of the two has begun anew
//	any       silent > limit                     Idle      -; what was under way has failed, and we begin another life
//
// A life is a random number. Data is taken only if it names both ends' present lives, so that what a former life has sent
// harms nobody, and one that begins anew is recognised by the first frame that it gets. A life of the peer is believed if it
// answers a question that was not answered before: a hello may be late, and from a life that is over. So the lives of a
// peer are met in their order, and none is met again.
//
// A bye is from a life that takes and answers nothing any more. It names both lives, so that one that is late harms nobody, and it is
// said once: who misses it finds out by the silence.
//
// Source: MBCF §2.1 (guaranteed arrival and order), CENJU §3.
package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Lane is one of two streams of a connection. A receiver that cannot take a lane's next record holds that lane up, and
// never the other one.
type Lane = uint8

// The lanes.
const (
	Requests Lane = iota // what programs ask for
	Replies              // what is answered: always taken
)

// State of a connection.
type State uint8

// The states.
const (
	Idle State = iota
	Handshaking
	Open
)

// String names s.
func (s State) String() string {
	return [...]string{"idle", "handshaking", "open", "?"}[min(s, Open+1)]
}

// Config of a connection.
type Config struct {
	Incarnation     uint32        // random, not 0
	FrameSize       int           // of a frame, header included
	Headroom        int           // before each frame, for its driver's own header
	PeerTimeout     time.Duration // how long the peer may be silent; 0 is DefaultLimit
	InitialSequence uint32        // the first sequence number, at both ends; 0 is 1
	Alloc           func() []byte // gives Room and Size bytes
	// Free takes them back. A connection whose frames were all acknowledged and taken has none; one whose peer has gone for good
	// keeps what came early, at most Stash a lane, until it is spoken to and given up.
	Free func([]byte)
}

// Conn is one end of a connection.
type Conn struct {
	cfg    Config
	state  State
	local  uint32
	remote uint32
	lanes  [Lanes]lane
	rtt    rttEstimator

	challenge             uint32        // that the peer's life is to answer; not 0
	respondTo, response   uint32        // the life that has asked, and its question
	helloDue, helloAckDue bool          // owed
	helloDeadline         monotime.Time // Greeting: when to say it again
	helloBackoff          uint          // that were not answered, in a row
	staleReplied          monotime.Time // when a frame for another life of ours was answered last
	byeDue                bool          // owed
	retries               int           // answers that were due and did not come, in a row
	lastRetry             monotime.Time // when the last of them was missed; valid if tries > 0
	silence               time.Duration // for how long all of them were awaited, but the first
	ackPolicy             AckPolicy
	needsPump             bool // something happened after which there may be more to send, or room for more
	offered               offer
	batch                 [MaxBatch]offer
	control               []byte
	counters              Counters
}

type lane struct {
	sender
	receiver
}

// Counters of a connection, over all lives.
type Counters struct {
	Sent             uint64 `json:"sent"`              // frames of records
	Retransmitted    uint64 `json:"retransmitted"`     // of these, again
	Acks             uint64 `json:"acks"`              // acknowledgements sent alone
	Delivered        uint64 `json:"delivered"`         // frames of records taken
	OutOfOrder       uint64 `json:"out_of_order"`      // kept, as one before was missing or held
	Duplicate        uint64 `json:"duplicate"`         // here already
	BeyondWindow     uint64 `json:"beyond_window"`     // no room
	StaleIncarnation uint64 `json:"stale_incarnation"` // of or for another life
	TooLong          uint64 `json:"too_long"`          // longer than Size: dropped
}

// New makes a connection.
func New(cfg Config) *Conn {
	if cfg.PeerTimeout == 0 {
		cfg.PeerTimeout = DefaultPeerTimeout
	}
	if cfg.InitialSequence == 0 {
		cfg.InitialSequence = 1
	}
	free := cfg.Free
	cfg.Free = func(b []byte) { free(b[:cfg.Headroom+cfg.FrameSize]) } // all of what Alloc gave
	c := &Conn{cfg: cfg, local: cfg.Incarnation, challenge: 1, control: make([]byte, cfg.Headroom+ackLen)}
	c.resetLanes()
	return c
}

// clear begins with empty lanes.
func (c *Conn) resetLanes() {
	for i := range c.lanes {
		l := &c.lanes[i]
		for k := range l.packets {
			if b := l.packets[k].buf; b != nil {
				c.cfg.Free(b)
			}
		}
		for _, b := range l.outOfOrder {
			if b != nil {
				c.cfg.Free(b)
			}
		}
		*l = lane{}
		l.sender.init(c.cfg.InitialSequence)
		l.receiver.init(c.cfg.InitialSequence)
	}
	c.rtt = rttEstimator{}
	c.retries = 0
}

// State returns the state.
func (c *Conn) State() State { return c.state }

// Counters returns the counters.
func (c *Conn) Counters() Counters { return c.counters }

// Done reports whether all of a lane that was reserved has been acknowledged: it was taken.
func (c *Conn) AllAcked(l Lane) bool { return c.lanes[l].allAcked() }

// Mark returns the lane's end: what has been reserved so far is acknowledged once Reached.
func (c *Conn) Mark(l Lane) uint32 {
	s := &c.lanes[l].sender
	if s.fill > 0 {
		return s.queued + 1
	}
	return s.queued
}

// Reached reports whether all before a mark was acknowledged.
func (c *Conn) Acked(l Lane, mark uint32) bool { return !before(c.lanes[l].una, mark) }

// Deadline returns when to call Advance; ok is false if there is nothing to do unasked.
func (c *Conn) Deadline() (at monotime.Time, ok bool) {
	earlier := func(t monotime.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if c.state == Handshaking {
		earlier(c.helloDeadline)
	}
	if c.state != Open {
		return at, ok
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		if l.awaitsAck() {
			earlier(l.sender.rtoDeadline)
		}
		if l.unacked > 0 && !l.ackDue(c.ackPolicy) {
			earlier(l.receiver.ackDeadline)
		}
	}
	return at, ok
}

// Advance does what is due. It returns true if the peer was silent for too long: what was under way has failed.
func (c *Conn) Advance(now monotime.Time) (down bool) {
	c.offered = offer{} // it may be lost
	if c.state == Handshaking && !now.Before(c.helloDeadline) {
		down = c.retry(now, c.helloDeadline)
		c.helloDue = true
		c.helloBackoff++
		c.helloDeadline = now.Add(min(initialRTO<<min(c.helloBackoff, 8), maxRTO))
	}
	if c.state == Open {
		for i := range c.lanes {
			l := &c.lanes[i]
			if l.unacked > 0 && !now.Before(l.receiver.ackDeadline) {
				l.ackNow = true
			}
			if l.awaitsAck() && !now.Before(l.sender.rtoDeadline) {
				down = c.retry(now, l.sender.rtoDeadline) || down
				l.onRTO(now, &c.rtt)
			}
		}
	}
	if down {
		c.reset()
	}
	return down
}

// try counts an answer that was due and did not come, and reports whether that is enough. What counts as silence is the time until
// it was due, and not how late this end is to notice: if it stood still itself, an answer may be here that it has not looked at yet.
func (c *Conn) retry(now, due monotime.Time) bool {
	if c.retries == 0 {
		c.lastRetry, c.silence = now, 0
	}
	c.silence += max(due.Sub(c.lastRetry), 0)
	c.lastRetry = now
	c.retries++
	return c.retries > minRetries && c.silence >= c.cfg.PeerTimeout
}

// giveUp ends this life: the peer may have taken some of what was under way, and is not to take the rest. The peer's own goes
// on, for all we know.
func (c *Conn) reset() {
	c.local = c.local*1664525 + 1013904223 // any other number
	if c.local == 0 {
		c.local = 1
	}
	c.remote, c.state, c.helloDue, c.helloAckDue, c.byeDue = 0, Idle, false, false, false
	c.resetLanes()
}

// Leave has Next give out a bye, if the peer has been met, behind all else that can go: what was taken is acknowledged first. The connection
// is of no use after that.
func (c *Conn) Close() {
	c.byeDue = c.state == Open
	for i := range c.lanes {
		l := &c.lanes[i]
		l.ackNow = l.ackNow || l.unacked > 0
		l.uncorked = l.fill > 0
	}
}
