package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// sentFrame is a frame that NextBatch has returned.
type sentFrame struct {
	kind     Kind
	lane     Lane
	sequence uint32
	ackLane  Lane
	ackNow   bool // it requests an acknowledgement at once
}

// AckPolicy is whether an acknowledgement may wait for data to piggyback on.
type AckPolicy uint8

// The policies.
const (
	NoPiggyback   AckPolicy = iota // no data is queued: it goes alone when the peer requests it
	MayPiggyback                   // data may follow soon: it waits, but not for long in a stream
	WillPiggyback                  // data follows at once: it goes alone only for a gap
)

// SetAckPolicy changes what acknowledgements wait for.
func (c *Conn) SetAckPolicy(p AckPolicy) { c.ackPolicy = p }

// MaxRecord returns the longest record, in bytes.
func (c *Conn) MaxRecord() int { return c.cfg.FrameSize - HeaderLen }

// Available returns how many bytes are left in the frame being filled, or in a new one if that is
// less than least; 0 if the window is full.
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

// Reserve returns n bytes, at most MaxRecord, for the next record of a lane, or nil if the window
// is full until the peer acknowledges some. The caller fills them before any other call.
func (c *Conn) Reserve(now monotime.Time, l Lane, n int) []byte {
	c.needsPump = true
	b := c.lanes[l].reserve(n, &c.cfg)
	if b != nil && c.state == Idle {
		c.beginHandshake(now)
	}
	return b
}

// Corked reports whether a lane has a frame that waits for more records.
func (c *Conn) Corked(l Lane) bool { return c.lanes[l].fill > 0 && !c.lanes[l].uncorked }

// Uncork lets that frame go as soon as the windows allow.
func (c *Conn) Uncork(l Lane) { c.lanes[l].uncorked = c.lanes[l].fill > 0 }

// Unsent returns how many frames of a lane are full and not sent yet.
func (c *Conn) Unsent(l Lane) int { return int(c.lanes[l].queued - c.lanes[l].sender.nxt) }

// NextBatch returns the frames to send now, each behind Config.Headroom bytes, and notes them as
// sent. They are valid until the next call. The driver tells Refused of those that it could not
// send.
func (c *Conn) NextBatch(now monotime.Time, frames *[MaxBatch][]byte) (n int) {
	for n < MaxBatch {
		b, f := c.next()
		if b == nil {
			break
		}
		c.onSent(now, f)
		frames[n], c.batch[n] = b, f
		n++
		if f.kind != Data {
			break // control frames share their memory
		}
		n = c.nextStream(now, frames, n, f)
	}
	return n
}

// next returns the next frame to send, or nil.
func (c *Conn) next() ([]byte, sentFrame) {
	switch {
	case c.helloAckDue:
		return c.controlFrame(sentFrame{kind: HelloAck})
	case c.helloDue:
		return c.controlFrame(sentFrame{kind: Hello})
	case c.state != Open:
		return nil, sentFrame{}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackNow && r.count > 0 { // data has no SACK
			return c.controlFrame(sentFrame{kind: Ack, lane: Lane(l)})
		}
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].next(); ok {
			return c.dataFrame(l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackDue(c.ackPolicy) {
			return c.controlFrame(sentFrame{kind: Ack, lane: Lane(l)})
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.controlFrame(sentFrame{kind: Ack, lane: Lane(l), ackNow: true})
		}
	}
	if c.byeDue {
		return c.controlFrame(sentFrame{kind: Bye})
	}
	c.needsPump = false
	return nil, sentFrame{}
}

// controlFrame makes a frame without records. An Ack that requests an acknowledgement is a probe.
func (c *Conn) controlFrame(f sentFrame) ([]byte, sentFrame) {
	h := Header{Kind: f.kind, Src: c.local, Dst: c.remote}
	switch f.kind {
	case Hello:
		h.Dst, h.Sequence = 0, c.challenge
	case HelloAck:
		h.Dst, h.Ack = c.respondTo, c.response
		if c.respondTo != c.remote {
			h.Sequence = c.challenge
		}
	case Ack:
		h.Lane, h.AckLane, h.AckNow = f.lane, f.lane, f.ackNow
		f.ackLane = f.lane
		c.lanes[f.lane].fillAck(&h)
	}
	return c.control[:c.cfg.Headroom+h.put(c.control[c.cfg.Headroom:])], f
}

// dataFrame puts a header before a frame's records, with the acknowledgement of the lane that
// needs one.
func (c *Conn) dataFrame(l Lane, sequence uint32) ([]byte, sentFrame) {
	s := &c.lanes[l].sender
	p := s.packet(sequence)
	h := Header{Kind: Data, Lane: l, AckLane: l, Src: c.local, Dst: c.remote, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].unacked == 0 && c.lanes[other].unacked > 0 {
		h.AckLane = other
	}
	h.AckNow = p.state == packetLost || s.requestsAck(sequence)
	c.lanes[h.AckLane].fillAck(&h)
	h.put(p.buf[c.cfg.Headroom:])
	return p.buf[:c.cfg.Headroom+p.len], sentFrame{Data, l, sequence, h.AckLane, h.AckNow}
}

func (c *Conn) onSent(now monotime.Time, f sentFrame) {
	switch f.kind {
	case Hello:
		c.helloDue = false
	case HelloAck:
		c.helloAckDue = false
	case Bye:
		c.byeDue = false
	case Data:
		s := &c.lanes[f.lane].sender
		if s.packet(f.sequence).sends > 0 {
			c.counters.Retransmitted++
		}
		s.onSent(f.sequence, f.ackNow, now, &c.rtt)
		c.lanes[f.ackLane].onAckSent()
		c.counters.Sent++
	case Ack:
		if f.ackNow {
			c.lanes[f.lane].probe = false
		}
		c.lanes[f.ackLane].onAckSent()
		c.counters.Acks++
	}
}

// nextStream appends the frames that are like f, the last of n: of its lane, sent for the first
// time, with the same acknowledgement. It copies f's header and changes what differs.
func (c *Conn) nextStream(now monotime.Time, frames *[MaxBatch][]byte, n int, f sentFrame) int {
	s := &c.lanes[f.lane].sender
	headroom := c.cfg.Headroom
	header := (*[HeaderLen]byte)(frames[n-1][headroom:])
	for n < MaxBatch && s.canStream() && c.lanes[Requests].unacked == 0 && c.lanes[Replies].unacked == 0 {
		p := s.packet(s.nxt)
		f.sequence, f.ackNow = s.nxt, s.requestsAck(s.nxt)
		b := p.buf[:headroom+p.len]
		*(*[HeaderLen]byte)(b[headroom:]) = *header
		renumber(b[headroom:], f.sequence, f.ackNow)
		frames[n], c.batch[n] = b, f
		s.onSent(f.sequence, f.ackNow, now, &c.rtt)
		c.counters.Sent++
		n++
	}
	return n
}

// Refused takes back those of the n frames of the last NextBatch that could not be sent, from the
// first refused one on. NextBatch returns them again.
func (c *Conn) Refused(first, n int) {
	c.needsPump = true
	for _, f := range c.batch[first:n] {
		switch f.kind {
		case Hello:
			c.helloDue = true
		case HelloAck:
			c.helloAckDue = true
		case Bye:
			c.byeDue = true
		case Data:
			if c.lanes[f.lane].onRefused(f.sequence) {
				c.counters.Retransmitted--
			}
			c.lanes[f.ackLane].unacked = max(c.lanes[f.ackLane].unacked, 1)
			c.counters.Sent--
		case Ack:
			if f.ackNow {
				c.lanes[f.lane].probe = true
			} else {
				c.lanes[f.ackLane].ackNow = true
			}
			c.counters.Acks--
		}
	}
}
