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
//	any       a frame of or for another life     same      hello: one of the two has begun anew
//	any       silent > limit                     Idle      -; what was under way has failed, and we begin another life
//
// A life is a random number. Data is taken only if it names both ends' present lives, so that what a former life has sent
// harms nobody, and one that begins anew is recognised by the first frame that it gets. A life of the peer is believed if it
// answers a question that was not answered before: a hello may be late, and from a life that is over. So the lives of a
// peer are met in their order, and none is met again.
//
// Source: MBCF §2.1 (guaranteed arrival and order), CENJU §3.
package reliable

import (
	"time"

	"github.com/rawlane/rawlane/internal/mono"
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
	Greeting
	Open
)

// String names s.
func (s State) String() string { return [...]string{"idle", "greeting", "open", "?"}[min(s, Open+1)] }

// Config of a connection.
type Config struct {
	Life  uint32        // random, not 0
	Size  int           // of a frame, header included
	Room  int           // before each frame, for its driver's own header
	Limit time.Duration // how long the peer may be silent; 0 is DefaultLimit
	Start uint32        // the first sequence number, at both ends; 0 is 1
	Alloc func() []byte // gives Room and Size bytes
	Free  func([]byte)  // takes them back: an idle connection has none
}

// Conn is one end of a connection.
type Conn struct {
	cfg    Config
	state  State
	mine   uint32
	theirs uint32
	lanes  [Lanes]lane
	rtt    roundTrip

	question       uint32    // that the peer's life is to answer; not 0
	asker, asked   uint32    // the life that has asked, and its question
	hello, welcome bool      // owed
	helloDue       mono.Time // Greeting: when to say it again
	greetings      uint      // that were not answered, in a row
	strayed        mono.Time // when a frame for another life of ours was answered last
	silent         mono.Time // since when answers are due; valid if tries > 0
	tries          int
	quiet          bool
	out            pick
	gathered       [Gathered]pick
	control        []byte
	counters       Counters
}

type lane struct {
	sender
	receiver
}

// pick is the frame that Next gave out.
type pick struct {
	kind     Kind
	lane     Lane
	sequence uint32
	ackLane  Lane
	ask      bool // for an acknowledgement at once
}

// Counters of a connection, over all lives.
type Counters struct {
	Sent      uint64 `json:"sent"`      // frames of records
	SentAgain uint64 `json:"again"`     // of these, again
	Acks      uint64 `json:"acks"`      // acknowledgements sent alone
	Taken     uint64 `json:"taken"`     // frames of records taken
	Early     uint64 `json:"early"`     // kept, as one before was missing or held
	Duplicate uint64 `json:"duplicate"` // here already
	Beyond    uint64 `json:"beyond"`    // no room
	Stray     uint64 `json:"stray"`     // of or for another life
	Long      uint64 `json:"long"`      // longer than Size: dropped
}

// New makes a connection.
func New(cfg Config) *Conn {
	if cfg.Limit == 0 {
		cfg.Limit = DefaultLimit
	}
	if cfg.Start == 0 {
		cfg.Start = 1
	}
	free := cfg.Free
	cfg.Free = func(b []byte) { free(b[:cfg.Room+cfg.Size]) } // all of what Alloc gave
	c := &Conn{cfg: cfg, mine: cfg.Life, question: 1, control: make([]byte, cfg.Room+HeaderLen)}
	c.clear()
	return c
}

// clear begins with empty lanes.
func (c *Conn) clear() {
	for i := range c.lanes {
		l := &c.lanes[i]
		for k := range l.slots {
			if b := l.slots[k].b; b != nil {
				c.cfg.Free(b)
			}
		}
		for _, b := range l.early {
			if b != nil {
				c.cfg.Free(b)
			}
		}
		*l = lane{}
		l.sender.init(c.cfg.Start)
		l.receiver.init(c.cfg.Start)
	}
	c.rtt = roundTrip{}
	c.tries = 0
}

// State returns the state.
func (c *Conn) State() State { return c.state }

// Counters returns the counters.
func (c *Conn) Counters() Counters { return c.counters }

// Done reports whether all of a lane that was reserved has been acknowledged: it was taken.
func (c *Conn) Done(l Lane) bool { return c.lanes[l].idle() }

// Mark returns the lane's end: what has been reserved so far is acknowledged once Reached.
func (c *Conn) Mark(l Lane) uint32 {
	s := &c.lanes[l].sender
	if s.fill > 0 {
		return s.built + 1
	}
	return s.built
}

// Reached reports whether all before a mark was acknowledged.
func (c *Conn) Reached(l Lane, mark uint32) bool { return !before(c.lanes[l].una, mark) }

// Largest returns the longest record, in bytes.
func (c *Conn) Largest() int { return c.cfg.Size - HeaderLen }

// Room returns how many bytes are left in the frame that is being filled, or in a new one if that is less than least; 0
// if there is none.
func (c *Conn) Room(l Lane, least int) int {
	s := &c.lanes[l].sender
	if s.fill > 0 && c.cfg.Size-s.fill >= least {
		return c.cfg.Size - s.fill
	}
	if s.fill > 0 && s.built+1-s.una >= Window || s.full() {
		return 0
	}
	return c.Largest()
}

// Reserve returns n bytes, at most Largest, for a record behind those before, or nil if the lane has no room: then some is
// acknowledged first. The caller fills them before it calls anything else.
func (c *Conn) Reserve(now mono.Time, l Lane, n int) []byte {
	b := c.lanes[l].reserve(n, &c.cfg)
	if b != nil && c.state == Idle {
		c.state, c.hello, c.greetings = Greeting, true, 0
		c.helloDue = now.Add(firstTimeout)
	}
	return b
}

// Quiet has Next give out no acknowledgements that can wait until off: data may follow at once, which they go with.
func (c *Conn) Quiet(on bool) { c.quiet = on }

// Corked reports whether a lane has a frame that waits for more to share it.
func (c *Conn) Corked(l Lane) bool { return c.lanes[l].fill > 0 && !c.lanes[l].urgent }

// Uncork has what was reserved so far go as soon as the window lets it.
func (c *Conn) Uncork(l Lane) { c.lanes[l].urgent = c.lanes[l].fill > 0 }

// Next returns a frame to send now, behind Config.Room bytes, or nil. It is valid until Sent or another call; if it cannot be sent, it comes again.
func (c *Conn) Next(now mono.Time) []byte {
	switch {
	case c.welcome:
		return c.controlFrame(pick{kind: Welcome})
	case c.hello:
		return c.controlFrame(pick{kind: Hello})
	case c.state != Open:
		return nil
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].pick(); ok {
			return c.dataFrame(l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.wants(c.quiet) {
			return c.controlFrame(pick{kind: Ack, lane: Lane(l)})
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.controlFrame(pick{kind: Ack, lane: Lane(l), sequence: 1})
		}
	}
	return nil
}

// controlFrame makes a frame without records. An Ack with a sequence is a question.
func (c *Conn) controlFrame(p pick) []byte {
	c.out = p
	h := Header{Kind: p.kind, From: c.mine, To: c.theirs}
	switch p.kind {
	case Hello:
		h.To, h.Sequence = 0, c.question
	case Welcome:
		h.To, h.Ack = c.asker, c.asked
		if c.asker != c.theirs {
			h.Sequence = c.question
		}
	case Ack:
		h.Lane, h.AckLane, h.AnswerNow = p.lane, p.lane, p.sequence != 0
		c.out.ackLane = p.lane
		c.lanes[p.lane].acknowledge(&h)
	}
	h.put(c.control[c.cfg.Room:])
	return c.control
}

// dataFrame puts a header before a frame's records: with the newest acknowledgement of the lane that needs one.
func (c *Conn) dataFrame(l Lane, sequence uint32) []byte {
	s := &c.lanes[l].sender
	f := s.slot(sequence)
	h := Header{Kind: Data, Lane: l, AckLane: l, From: c.mine, To: c.theirs, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].owed == 0 && c.lanes[other].owed > 0 {
		h.AckLane = other
	}
	// Nobody waits for the acknowledgement of a frame in a stream, but for the last one's: it opens the way for what is queued.
	// So does the last one that may be on its way, if the receiver would not say something earlier unasked.
	h.AnswerNow = sequence+1 == s.built && s.fill == 0 || f.state == missing || s.flight+1 >= s.congestion && s.congestion < 2*ackEvery
	c.out = pick{Data, l, sequence, h.AckLane, h.AnswerNow}
	c.lanes[h.AckLane].acknowledge(&h)
	h.put(f.b[c.cfg.Room:])
	return f.b[:c.cfg.Room+f.n]
}

// Sent notes that the frame that Next returned has gone. It does nothing if something was called in between that may have
// overtaken it.
func (c *Conn) Sent(now mono.Time) {
	p := c.out
	c.out = pick{}
	switch p.kind {
	case Hello:
		c.hello = false
	case Welcome:
		c.welcome = false
	case Data:
		s := &c.lanes[p.lane].sender
		if s.slot(p.sequence).sends > 0 {
			c.counters.SentAgain++
		}
		s.sent(p.sequence, p.ask, now, &c.rtt)
		c.lanes[p.ackLane].told()
		c.counters.Sent++
	case Ack:
		if p.sequence != 0 {
			c.lanes[p.lane].probe = false
		}
		c.lanes[p.ackLane].told()
		c.counters.Acks++
	}
}

// Gathered is how many frames Gather gives out at most.
const Gathered = 32

// Gather gives out frames to send now, as Next and Sent do, and returns how many. They are valid until another call. Those
// that cannot be sent are to be told to Refused.
func (c *Conn) Gather(now mono.Time, frames *[Gathered][]byte) (n int) {
	for n < Gathered {
		f := c.Next(now)
		if f == nil {
			break
		}
		frames[n], c.gathered[n] = f, c.out
		kind := c.out.kind
		c.Sent(now)
		n++
		if kind != Data {
			break // there is one buffer for these
		}
	}
	return n
}

// Refused says that of the n frames that Gather gave out those from the first refused one on could not be sent. They come
// again.
func (c *Conn) Refused(first, n int) {
	for _, p := range c.gathered[first:n] {
		switch p.kind {
		case Hello:
			c.hello = true
		case Welcome:
			c.welcome = true
		case Data:
			c.lanes[p.lane].refused(p.sequence)
			c.counters.Sent--
		case Ack:
			c.lanes[p.ackLane].now = true
		}
	}
}

// Waiting returns how many frames of a lane are full and not sent yet.
func (c *Conn) Waiting(l Lane) int { return int(c.lanes[l].built - c.lanes[l].sender.next) }

// Event is what a frame has brought.
type Event uint8

// The events.
const (
	Nothing   Event = iota
	Take            // the records are next in their lane: take them, and call Taken or Hold
	Restarted       // the peer has begun anew: what was under way has failed
)

// Handle takes a frame.
func (c *Conn) Handle(now mono.Time, h *Header, records []byte) Event {
	c.out = pick{} // it may be done
	if len(records) > c.Largest() {
		c.counters.Long++
		return Nothing
	}
	switch h.Kind {
	case Hello:
		c.welcome, c.asker, c.asked = true, h.From, h.Sequence
		if h.From == c.theirs {
			c.tries = 0
		}
		return Nothing
	case Welcome:
		return c.welcomed(h)
	}
	if h.To != c.mine || h.From != c.theirs {
		return c.stray(now)
	}
	c.tries = 0
	l := &c.lanes[h.AckLane]
	l.acknowledged(h, now, &c.rtt, c.cfg.Free)
	if h.Kind == Ack {
		if h.AnswerNow {
			c.lanes[h.Lane].now = true
		}
		return Nothing
	}
	switch c.lanes[h.Lane].arrive(h, records, now, c.cfg.Alloc) {
	case inOrder:
		return Take
	case stashed:
		c.counters.Early++
	case duplicate:
		c.counters.Duplicate++
	case beyond:
		c.counters.Beyond++
	}
	return Nothing
}

// stray answers a frame that is not for this life, or of one that was not introduced: the peer has missed that this end has
// begun anew.
func (c *Conn) stray(now mono.Time) Event {
	c.counters.Stray++
	if now.Sub(c.strayed) >= ackDelay || c.strayed.IsZero() {
		c.strayed = now
		c.hello = true
	}
	return Nothing
}

// welcomed hears of the peer's life. Only that which answers what was not answered before is its present one.
func (c *Conn) welcomed(h *Header) Event {
	if h.To == c.mine && h.Sequence != 0 {
		c.welcome, c.asker, c.asked = true, h.From, h.Sequence
	}
	if h.To != c.mine || h.Ack != c.question {
		c.counters.Stray++
		return Nothing
	}
	c.question = max(c.question+1, 1)
	c.state, c.hello, c.tries = Open, false, 0
	if c.theirs == h.From {
		return Nothing
	}
	event := Nothing
	if c.theirs != 0 {
		c.clear()
		event = Restarted
	}
	c.theirs = h.From
	return event
}

// Taken moves a lane on behind the records that were taken.
func (c *Conn) Taken(l Lane) {
	c.lanes[l].taken(c.cfg.Free)
	c.counters.Taken++
}

// Hold keeps the rest of the records that were not taken, until Following is asked for them again.
func (c *Conn) Hold(l Lane, rest []byte) { c.lanes[l].hold(rest, c.cfg.Alloc) }

// Following returns records that are next in their lane, and came early or were held. After them call Taken or Hold.
func (c *Conn) Following(l Lane) (records []byte, ok bool) { return c.lanes[l].following() }

// Held reports whether a lane is held.
func (c *Conn) Held(l Lane) bool { return c.lanes[l].held }

// Deadline returns when to call Advance; ok is false if there is nothing to do unasked.
func (c *Conn) Deadline() (at mono.Time, ok bool) {
	earlier := func(t mono.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if c.state == Greeting {
		earlier(c.helloDue)
	}
	if c.state != Open {
		return at, ok
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		if l.awaits() {
			earlier(l.sender.due)
		}
		if l.owed > 0 && !l.wants(c.quiet) {
			earlier(l.receiver.due)
		}
	}
	return at, ok
}

// Advance does what is due. It returns true if the peer was silent for too long: what was under way has failed.
func (c *Conn) Advance(now mono.Time) (down bool) {
	c.out = pick{} // it may be lost
	if c.state == Greeting && !now.Before(c.helloDue) {
		c.hello = true
		c.greetings++
		c.helloDue = now.Add(min(firstTimeout<<min(c.greetings, 8), mostTimeout))
		down = c.try(now)
	}
	if c.state == Open {
		for i := range c.lanes {
			l := &c.lanes[i]
			if l.owed > 0 && !now.Before(l.receiver.due) {
				l.now = true
			}
			if l.awaits() && !now.Before(l.sender.due) {
				l.expire(now, &c.rtt)
				down = c.try(now) || down
			}
		}
	}
	if down {
		c.giveUp()
	}
	return down
}

// try counts an answer that did not come, and reports whether that is enough.
func (c *Conn) try(now mono.Time) bool {
	if c.tries == 0 {
		c.silent = now
	}
	c.tries++
	return c.tries > leastTries && now.Sub(c.silent) >= c.cfg.Limit
}

// giveUp ends this life: the peer may have taken some of what was under way, and is not to take the rest. The peer's own goes
// on, for all we know.
func (c *Conn) giveUp() {
	c.mine = c.mine*1664525 + 1013904223 // any other number
	if c.mine == 0 {
		c.mine = 1
	}
	c.theirs, c.state, c.hello, c.welcome = 0, Idle, false, false
	c.clear()
}
