package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// pick is the frame that Next gave out.
type pick struct {
	kind     Kind
	lane     Lane
	sequence uint32
	ackLane  Lane
	ask      bool // for an acknowledgement at once
}

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
func (c *Conn) Reserve(now monotime.Time, l Lane, n int) []byte {
	c.stirred = true
	b := c.lanes[l].reserve(n, &c.cfg)
	if b != nil && c.state == Idle {
		c.state, c.hello, c.greetings = Greeting, true, 0
		c.helloDue = now.Add(firstTimeout)
	}
	return b
}

// Company is whether there is data for an acknowledgement to go with.
type Company uint8

// The companies.
const (
	Alone    Company = iota // none: it goes when the peer wants it
	Perhaps                 // some may follow at once: it waits for that, but not for long while more comes
	Promised                // some follows at once: it goes alone only if something is missing
)

// Expect says what acknowledgements may wait for.
func (c *Conn) Expect(data Company) { c.company = data }

// Corked reports whether a lane has a frame that waits for more to share it.
func (c *Conn) Corked(l Lane) bool { return c.lanes[l].fill > 0 && !c.lanes[l].urgent }

// Uncork has what was reserved so far go as soon as the window lets it.
func (c *Conn) Uncork(l Lane) { c.lanes[l].urgent = c.lanes[l].fill > 0 }

// Next returns a frame to send now, behind Config.Room bytes, or nil. It is valid until Sent or another call; if it cannot be sent, it comes again.
func (c *Conn) Next(now monotime.Time) []byte {
	switch {
	case c.welcome:
		return c.controlFrame(pick{kind: Welcome})
	case c.hello:
		return c.controlFrame(pick{kind: Hello})
	case c.state != Open:
		return nil
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.now && r.count > 0 { // which data cannot tell
			return c.controlFrame(pick{kind: Ack, lane: Lane(l)})
		}
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].pick(); ok {
			return c.dataFrame(l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.wants(c.company) {
			return c.controlFrame(pick{kind: Ack, lane: Lane(l)})
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.controlFrame(pick{kind: Ack, lane: Lane(l), sequence: 1})
		}
	}
	if c.bye {
		return c.controlFrame(pick{kind: Bye})
	}
	c.stirred = false
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
	return c.control[:c.cfg.Room+h.put(c.control[c.cfg.Room:])]
}

// dataFrame puts a header before a frame's records: with the newest acknowledgement of the lane that needs one.
func (c *Conn) dataFrame(l Lane, sequence uint32) []byte {
	s := &c.lanes[l].sender
	f := s.slot(sequence)
	h := Header{Kind: Data, Lane: l, AckLane: l, From: c.mine, To: c.theirs, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].owed == 0 && c.lanes[other].owed > 0 {
		h.AckLane = other
	}
	h.AnswerNow = f.state == missing || s.asks(sequence)
	c.out = pick{Data, l, sequence, h.AckLane, h.AnswerNow}
	c.lanes[h.AckLane].acknowledge(&h)
	h.put(f.b[c.cfg.Room:])
	return f.b[:c.cfg.Room+f.n]
}

// Sent notes that the frame that Next returned has gone. It does nothing if something was called in between that may have
// overtaken it.
func (c *Conn) Sent(now monotime.Time) {
	p := c.out
	c.out = pick{}
	switch p.kind {
	case Hello:
		c.hello = false
	case Welcome:
		c.welcome = false
	case Bye:
		c.bye = false
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
const Gathered = 64

// Gather gives out frames to send now, as Next and Sent do, and returns how many. They are valid until another call. Those
// that cannot be sent are to be told to Refused.
func (c *Conn) Gather(now monotime.Time, frames *[Gathered][]byte) (n int) {
	for n < Gathered {
		f := c.Next(now)
		if f == nil {
			break
		}
		p := c.out
		frames[n], c.gathered[n] = f, p
		c.Sent(now)
		n++
		if p.kind != Data {
			break // there is one buffer for these
		}
		n = c.gatherStream(now, frames, n, p)
	}
	return n
}

// gatherStream goes on with the frames behind p, the last of n, that are like it: of its lane, sent for the first time, while there
// is nothing else to say. Their headers differ in little.
func (c *Conn) gatherStream(now monotime.Time, frames *[Gathered][]byte, n int, p pick) int {
	s := &c.lanes[p.lane].sender
	room := c.cfg.Room
	header := (*[HeaderLen]byte)(frames[n-1][room:])
	for n < Gathered && s.streams() && c.lanes[Requests].owed == 0 && c.lanes[Replies].owed == 0 {
		f := s.slot(s.next)
		p.sequence, p.ask = s.next, s.asks(s.next)
		b := f.b[:room+f.n]
		*(*[HeaderLen]byte)(b[room:]) = *header
		renumber(b[room:], p.sequence, p.ask)
		frames[n], c.gathered[n] = b, p
		s.sent(p.sequence, p.ask, now, &c.rtt)
		c.counters.Sent++
		n++
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
		case Bye:
			c.bye = true
		case Data:
			if c.lanes[p.lane].refused(p.sequence) {
				c.counters.SentAgain--
			}
			c.lanes[p.ackLane].owed = max(c.lanes[p.ackLane].owed, 1)
			c.counters.Sent--
		case Ack:
			if p.sequence != 0 {
				c.lanes[p.lane].probe = true
			} else {
				c.lanes[p.ackLane].now = true
			}
			c.counters.Acks--
		}
	}
}

// Waiting returns how many frames of a lane are full and not sent yet.
func (c *Conn) Waiting(l Lane) int { return int(c.lanes[l].built - c.lanes[l].sender.next) }
