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
func (c *Conn) SetAckPolicy(p AckPolicy) {
	c.ackPolicy = p
	for l := range c.lanes {
		c.needsPump = c.needsPump || c.lanes[l].ackDue(p)
	}
}

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
func (c *Conn) Reserve(l Lane, n int) []byte {
	s := &c.lanes[l].sender
	frame, begun := s.queued, s.fill > 0
	b := s.reserve(n, &c.cfg)
	if !begun || s.queued != frame { // a record that joins a frame changes nothing
		c.needsPump = true
	}
	return b
}

// Corked reports whether a lane has a frame that waits for more records.
func (c *Conn) Corked(l Lane) bool { return c.lanes[l].fill > 0 && !c.lanes[l].uncorked }

// Uncork lets that frame go as soon as the windows allow.
func (c *Conn) Uncork(l Lane) {
	c.lanes[l].uncorked = c.lanes[l].fill > 0
	c.needsPump = c.needsPump || c.lanes[l].uncorked
}

// Unsent returns how many frames of a lane are full and not sent yet.
func (c *Conn) Unsent(l Lane) int { return int(c.lanes[l].queued - c.lanes[l].sender.nxt) }

// NextBatch returns the frames to send now, each behind Config.Headroom bytes, and notes them as
// sent. They are valid until the next call. The driver tells Refused of those that it could not
// send. There may be more frames while NeedsPump.
func (c *Conn) NextBatch(now monotime.Time, frames *[MaxBatch][]byte) (n int) {
	c.needsPump = true // until next has nothing more
	if c.state == Idle && !(c.AllAcked(Requests) && c.AllAcked(Replies)) {
		c.beginHandshake(now)
	}
	for n < MaxBatch {
		f := &c.batch[n]
		b := c.next(f)
		if b == nil {
			break
		}
		c.onSent(now, f)
		frames[n] = b
		n++
		if f.kind != Data {
			break // control frames share their memory
		}
		n = c.nextStream(now, frames, n)
	}
	return n
}

// next returns the next frame to send, or nil, and says in f what it is. It fills f in place: to
// return a struct of bytes would stall the load behind their stores, 10 ns a frame.
func (c *Conn) next(f *sentFrame) []byte {
	switch {
	case c.due[HelloAck]:
		return c.controlFrame(f, HelloAck, 0, false)
	case c.due[Hello]:
		return c.controlFrame(f, Hello, 0, false)
	case c.state != Open:
		return nil
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackNow && r.count > 0 { // data has no SACK
			return c.controlFrame(f, Ack, Lane(l), false)
		}
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].next(); ok {
			return c.dataFrame(f, l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackDue(c.ackPolicy) {
			return c.controlFrame(f, Ack, Lane(l), false)
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.controlFrame(f, Ack, Lane(l), true)
		}
	}
	if c.due[Bye] {
		return c.controlFrame(f, Bye, 0, false)
	}
	c.needsPump = false
	return nil
}

// controlFrame makes a frame without records. An Ack that requests an acknowledgement is a probe.
func (c *Conn) controlFrame(f *sentFrame, kind Kind, lane Lane, ackNow bool) []byte {
	f.kind, f.lane, f.sequence, f.ackLane, f.ackNow = kind, lane, 0, lane, ackNow
	h := Header{Kind: kind, Src: c.local, Dst: c.remote}
	switch kind {
	case Hello:
		h.Dst, h.Sequence = 0, c.challenge
	case HelloAck:
		h.Dst, h.Ack = c.respondTo, c.response
		if c.respondTo != c.remote {
			h.Sequence = c.challenge
		}
	case Ack:
		h.Lane, h.AckLane, h.AckNow = lane, lane, ackNow
		c.lanes[lane].fillAck(&h)
	}
	return c.control[:c.cfg.Headroom+h.put(c.control[c.cfg.Headroom:])]
}

// dataFrame puts a header before a frame's records, with the acknowledgement of the lane that
// needs one.
func (c *Conn) dataFrame(f *sentFrame, l Lane, sequence uint32) []byte {
	s := &c.lanes[l].sender
	p := s.packet(sequence)
	h := Header{Kind: Data, Lane: l, AckLane: l, Src: c.local, Dst: c.remote, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].unacked == 0 && c.lanes[other].unacked > 0 {
		h.AckLane = other
	}
	h.AckNow = p.state == packetLost || s.requestsAck(sequence)
	c.lanes[h.AckLane].fillAck(&h)
	h.put(p.buf[c.cfg.Headroom:])
	f.kind, f.lane, f.sequence, f.ackLane, f.ackNow = Data, l, sequence, h.AckLane, h.AckNow
	return p.buf[:c.cfg.Headroom+p.len]
}

func (c *Conn) onSent(now monotime.Time, f *sentFrame) {
	c.due[f.kind] = false
	switch f.kind {
	case Data:
		s := &c.lanes[f.lane].sender
		if s.packet(f.sequence).sends > 0 {
			c.cfg.Counters.Retransmitted++
		}
		s.onSent(f.sequence, f.ackNow, now, &c.rtt)
		c.lanes[f.ackLane].onAckSent()
		c.cfg.Counters.Sent++
	case Ack:
		if f.ackNow {
			c.lanes[f.lane].probe = false
		}
		c.lanes[f.ackLane].onAckSent()
		c.cfg.Counters.Acks++
	}
}

// nextStream appends the frames that are like the last of n: of its lane, sent for the first time,
// with the same acknowledgement. It copies that one's header and changes what differs.
func (c *Conn) nextStream(now monotime.Time, frames *[MaxBatch][]byte, n int) int {
	like := &c.batch[n-1]
	s := &c.lanes[like.lane].sender
	headroom := c.cfg.Headroom
	header := (*[HeaderLen]byte)(frames[n-1][headroom:])
	for n < MaxBatch && s.canStream() && c.lanes[Requests].unacked == 0 && c.lanes[Replies].unacked == 0 {
		p := s.packet(s.nxt)
		f := &c.batch[n]
		f.kind, f.lane, f.sequence, f.ackLane, f.ackNow = Data, like.lane, s.nxt, like.ackLane, s.requestsAck(s.nxt)
		b := p.buf[:headroom+p.len]
		*(*[HeaderLen]byte)(b[headroom:]) = *header
		renumber(b[headroom:], f.sequence, f.ackNow)
		frames[n] = b
		s.onSent(f.sequence, f.ackNow, now, &c.rtt)
		c.cfg.Counters.Sent++
		n++
	}
	return n
}

// Refused takes back those of the n frames of the last NextBatch that could not be sent, from the
// first refused one on. NextBatch returns them again.
func (c *Conn) Refused(first, n int) {
	c.needsPump = true
	for _, f := range c.batch[first:n] {
		c.due[f.kind] = true
		switch f.kind {
		case Data:
			if c.lanes[f.lane].onRefused(f.sequence) {
				c.cfg.Counters.Retransmitted--
			}
			c.lanes[f.ackLane].unacked = max(c.lanes[f.ackLane].unacked, 1)
			c.cfg.Counters.Sent--
		case Ack:
			if f.ackNow {
				c.lanes[f.lane].probe = true
			} else {
				c.lanes[f.ackLane].ackNow = true
			}
			c.cfg.Counters.Acks--
		}
	}
}
