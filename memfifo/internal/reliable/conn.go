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
	// Free takes them back. A connection whose frames were all acknowledged and taken has none; one whose peer has gone for good
	// keeps what came early, at most Stash a lane, until it is spoken to and given up.
	Free func([]byte)
}

// Conn is one end of a connection.
type Conn struct {
	cfg    Config
	state  State
	mine   uint32
	theirs uint32
	lanes  [Lanes]lane
	rtt    roundTrip

	question       uint32        // that the peer's life is to answer; not 0
	asker, asked   uint32        // the life that has asked, and its question
	hello, welcome bool          // owed
	helloDue       monotime.Time // Greeting: when to say it again
	greetings      uint          // that were not answered, in a row
	strayed        monotime.Time // when a frame for another life of ours was answered last
	bye            bool          // owed
	tries          int           // answers that were due and did not come, in a row
	tried          monotime.Time // when the last of them was missed; valid if tries > 0
	silence        time.Duration // for how long all of them were awaited, but the first
	company        Company
	stirred        bool // something happened after which there may be more to send, or room for more
	out            pick
	gathered       [Gathered]pick
	control        []byte
	counters       Counters
}

type lane struct {
	sender
	receiver
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
	c := &Conn{cfg: cfg, mine: cfg.Life, question: 1, control: make([]byte, cfg.Room+ackLen)}
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

// Deadline returns when to call Advance; ok is false if there is nothing to do unasked.
func (c *Conn) Deadline() (at monotime.Time, ok bool) {
	earlier := func(t monotime.Time) {
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
		if l.owed > 0 && !l.wants(c.company) {
			earlier(l.receiver.due)
		}
	}
	return at, ok
}

// Advance does what is due. It returns true if the peer was silent for too long: what was under way has failed.
func (c *Conn) Advance(now monotime.Time) (down bool) {
	c.out = pick{} // it may be lost
	if c.state == Greeting && !now.Before(c.helloDue) {
		down = c.try(now, c.helloDue)
		c.hello = true
		c.greetings++
		c.helloDue = now.Add(min(firstTimeout<<min(c.greetings, 8), mostTimeout))
	}
	if c.state == Open {
		for i := range c.lanes {
			l := &c.lanes[i]
			if l.owed > 0 && !now.Before(l.receiver.due) {
				l.now = true
			}
			if l.awaits() && !now.Before(l.sender.due) {
				down = c.try(now, l.sender.due) || down
				l.expire(now, &c.rtt)
			}
		}
	}
	if down {
		c.giveUp()
	}
	return down
}

// try counts an answer that was due and did not come, and reports whether that is enough. What counts as silence is the time until
// it was due, and not how late this end is to notice: if it stood still itself, an answer may be here that it has not looked at yet.
func (c *Conn) try(now, due monotime.Time) bool {
	if c.tries == 0 {
		c.tried, c.silence = now, 0
	}
	c.silence += max(due.Sub(c.tried), 0)
	c.tried = now
	c.tries++
	return c.tries > leastTries && c.silence >= c.cfg.Limit
}

// giveUp ends this life: the peer may have taken some of what was under way, and is not to take the rest. The peer's own goes
// on, for all we know.
func (c *Conn) giveUp() {
	c.mine = c.mine*1664525 + 1013904223 // any other number
	if c.mine == 0 {
		c.mine = 1
	}
	c.theirs, c.state, c.hello, c.welcome, c.bye = 0, Idle, false, false, false
	c.clear()
}

// Leave has Next give out a bye, if the peer has been met, behind all else that can go: what was taken is acknowledged first. The connection
// is of no use after that.
func (c *Conn) Leave() {
	c.bye = c.state == Open
	for i := range c.lanes {
		l := &c.lanes[i]
		l.now = l.now || l.owed > 0
		l.urgent = l.fill > 0
	}
}
