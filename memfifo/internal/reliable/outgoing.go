package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// pick is the frame that Next gave out.
type offer struct {
	kind     Kind
	lane     Lane
	sequence uint32
	ackLane  Lane
	ackNow   bool // for an acknowledgement at once
}

// Largest returns the longest record, in bytes.
func (c *Conn) MaxRecord() int { return c.cfg.FrameSize - HeaderLen }

// Room returns how many bytes are left in the frame that is being filled, or in a new one if that is less than least; 0
// if there is none.
func (c *Conn) Available(l Lane, least int) int {
	s := &c.lanes[l].sender
	if s.fill > 0 && c.cfg.FrameSize-s.fill >= least {
		return c.cfg.FrameSize - s.fill
	}
	if s.fill > 0 && s.queued+1-s.una >= Window || s.full() {
		return 0
	}
	return c.MaxRecord()
}

// Reserve returns n bytes, at most Largest, for a record behind those before, or nil if the lane has no room: then some is
// acknowledged first. The caller fills them before it calls anything else.
func (c *Conn) Reserve(now monotime.Time, l Lane, n int) []byte {
	c.needsPump = true
	b := c.lanes[l].reserve(n, &c.cfg)
	if b != nil && c.state == Idle {
		c.state, c.helloDue, c.helloBackoff = Handshaking, true, 0
		c.helloDeadline = now.Add(initialRTO)
	}
	return b
}

// Company is whether there is data for an acknowledgement to go with.
type AckPolicy uint8

// The companies.
const (
	NoPiggyback   AckPolicy = iota // none: it goes when the peer wants it
	MayPiggyback                   // some may follow at once: it waits for that, but not for long while more comes
	WillPiggyback                  // some follows at once: it goes alone only if something is missing
)

// Expect says what acknowledgements may wait for.
func (c *Conn) SetAckPolicy(data AckPolicy) { c.ackPolicy = data }

// Corked reports whether a lane has a frame that waits for more to share it.
func (c *Conn) Corked(l Lane) bool { return c.lanes[l].fill > 0 && !c.lanes[l].uncorked }

// Uncork has what was reserved so far go as soon as the window lets it.
func (c *Conn) Uncork(l Lane) { c.lanes[l].uncorked = c.lanes[l].fill > 0 }

// Next returns a frame to send now, behind Config.Room bytes, or nil. It is valid until Sent or another call; if it cannot be sent, it comes again.
func (c *Conn) NextFrame(now monotime.Time) []byte {
	switch {
	case c.helloAckDue:
		return c.controlFrame(offer{kind: HelloAck})
	case c.helloDue:
		return c.controlFrame(offer{kind: Hello})
	case c.state != Open:
		return nil
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackNow && r.count > 0 { // which data cannot tell
			return c.controlFrame(offer{kind: Ack, lane: Lane(l)})
		}
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].nextFrame(); ok {
			return c.dataFrame(l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackDue(c.ackPolicy) {
			return c.controlFrame(offer{kind: Ack, lane: Lane(l)})
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.controlFrame(offer{kind: Ack, lane: Lane(l), sequence: 1})
		}
	}
	if c.byeDue {
		return c.controlFrame(offer{kind: Bye})
	}
	c.needsPump = false
	return nil
}

// controlFrame makes a frame without records. An Ack with a sequence is a question.
func (c *Conn) controlFrame(p offer) []byte {
	c.offered = p
	h := Header{Kind: p.kind, Src: c.local, Dst: c.remote}
	switch p.kind {
	case Hello:
		h.Dst, h.Sequence = 0, c.challenge
	case HelloAck:
		h.Dst, h.Ack = c.respondTo, c.response
		if c.respondTo != c.remote {
			h.Sequence = c.challenge
		}
	case Ack:
		h.Lane, h.AckLane, h.AckNow = p.lane, p.lane, p.sequence != 0
		c.offered.ackLane = p.lane
		c.lanes[p.lane].fillAck(&h)
	}
	return c.control[:c.cfg.Headroom+h.put(c.control[c.cfg.Headroom:])]
}

// dataFrame puts a header before a frame's records: with the newest acknowledgement of the lane that needs one.
func (c *Conn) dataFrame(l Lane, sequence uint32) []byte {
	s := &c.lanes[l].sender
	f := s.packet(sequence)
	h := Header{Kind: Data, Lane: l, AckLane: l, Src: c.local, Dst: c.remote, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].unacked == 0 && c.lanes[other].unacked > 0 {
		h.AckLane = other
	}
	h.AckNow = f.state == packetLost || s.wantsAck(sequence)
	c.offered = offer{Data, l, sequence, h.AckLane, h.AckNow}
	c.lanes[h.AckLane].fillAck(&h)
	h.put(f.buf[c.cfg.Headroom:])
	return f.buf[:c.cfg.Headroom+f.len]
}

// Sent notes that the frame that Next returned has gone. It does nothing if something was called in between that may have
// overtaken it.
func (c *Conn) Sent(now monotime.Time) {
	p := c.offered
	c.offered = offer{}
	switch p.kind {
	case Hello:
		c.helloDue = false
	case HelloAck:
		c.helloAckDue = false
	case Bye:
		c.byeDue = false
	case Data:
		s := &c.lanes[p.lane].sender
		if s.packet(p.sequence).sends > 0 {
			c.counters.Retransmitted++
		}
		s.onSent(p.sequence, p.ackNow, now, &c.rtt)
		c.lanes[p.ackLane].onAckSent()
		c.counters.Sent++
	case Ack:
		if p.sequence != 0 {
			c.lanes[p.lane].probe = false
		}
		c.lanes[p.ackLane].onAckSent()
		c.counters.Acks++
	}
}

// Gathered is how many frames Gather gives out at most.
const MaxBatch = 64

// Gather gives out frames to send now, as Next and Sent do, and returns how many. They are valid until another call. Those
// that cannot be sent are to be told to Refused.
func (c *Conn) NextBatch(now monotime.Time, frames *[MaxBatch][]byte) (n int) {
	for n < MaxBatch {
		f := c.NextFrame(now)
		if f == nil {
			break
		}
		p := c.offered
		frames[n], c.batch[n] = f, p
		c.Sent(now)
		n++
		if p.kind != Data {
			break // there is one buffer for these
		}
		n = c.nextStream(now, frames, n, p)
	}
	return n
}

// gatherStream goes on with the frames behind p, the last of n, that are like it: of its lane, sent for the first time, while there
// is nothing else to say. Their headers differ in little.
func (c *Conn) nextStream(now monotime.Time, frames *[MaxBatch][]byte, n int, p offer) int {
	s := &c.lanes[p.lane].sender
	room := c.cfg.Headroom
	header := (*[HeaderLen]byte)(frames[n-1][room:])
	for n < MaxBatch && s.canStream() && c.lanes[Requests].unacked == 0 && c.lanes[Replies].unacked == 0 {
		f := s.packet(s.nxt)
		p.sequence, p.ackNow = s.nxt, s.wantsAck(s.nxt)
		b := f.buf[:room+f.len]
		*(*[HeaderLen]byte)(b[room:]) = *header
		renumber(b[room:], p.sequence, p.ackNow)
		frames[n], c.batch[n] = b, p
		s.onSent(p.sequence, p.ackNow, now, &c.rtt)
		c.counters.Sent++
		n++
	}
	return n
}

// Refused says that of the n frames that Gather gave out those from the first refused one on could not be sent. They come
// again.
func (c *Conn) Refused(first, n int) {
	for _, p := range c.batch[first:n] {
		switch p.kind {
		case Hello:
			c.helloDue = true
		case HelloAck:
			c.helloAckDue = true
		case Bye:
			c.byeDue = true
		case Data:
			if c.lanes[p.lane].onRefused(p.sequence) {
				c.counters.Retransmitted--
			}
			c.lanes[p.ackLane].unacked = max(c.lanes[p.ackLane].unacked, 1)
			c.counters.Sent--
		case Ack:
			if p.sequence != 0 {
				c.lanes[p.lane].probe = true
			} else {
				c.lanes[p.ackLane].ackNow = true
			}
			c.counters.Acks--
		}
	}
}

// Waiting returns how many frames of a lane are full and not sent yet.
func (c *Conn) Unsent(l Lane) int { return int(c.lanes[l].queued - c.lanes[l].sender.nxt) }
