package reliable

import "github.com/rawlane/rawlane/internal/monotime"

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
	if s.fill > 0 && c.cfg.SendSize-s.fill >= least {
		return c.cfg.SendSize - s.fill
	}
	if n := c.Filled(l); n >= Window || s.fill > 0 && n == Window-1 {
		return 0
	}
	return c.cfg.SendSize - HeaderLen
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

// Corked reports whether a lane has a frame that waits for more records, or frames that wait for
// others.
func (c *Conn) Corked(l Lane) bool {
	s := &c.lanes[l].sender
	return s.fill > 0 && !s.uncorked || s.nxt != s.queued && s.holds()
}

// Uncork lets these frames go as soon as the windows allow.
func (c *Conn) Uncork(l Lane) {
	s := &c.lanes[l].sender
	s.release()
	c.needsPump = c.needsPump || s.uncorked || s.nxt != s.queued
}

// maxBatch is how many frames NextBatch returns at most: those that the link sends together, if it
// does, as what is left over may go with the next ones.
func (c *Conn) maxBatch() int {
	if c.cfg.Train > 0 {
		return min(c.cfg.Train, MaxBatch)
	}
	return MaxBatch
}

// BatchReady reports whether the unsent frames of a lane fill a batch.
func (c *Conn) BatchReady(l Lane) bool { return c.Unsent(l) >= c.maxBatch() }

// Filled returns how many full frames of a lane are unsent or not acknowledged: Window at most.
func (c *Conn) Filled(l Lane) int { return int(c.lanes[l].queued - c.lanes[l].sender.una) }

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
	for limit := c.maxBatch(); n < limit; {
		h := &c.batch[n]
		b := c.next(h)
		if b == nil {
			break
		}
		c.onSent(now, h)
		frames[n] = b
		n++
		if h.Kind != Data {
			break // control frames share their memory
		}
		n = c.nextStream(now, frames[:limit], n)
	}
	return n
}

// next returns the next frame to send, or nil, and its header in h.
func (c *Conn) next(h *Header) []byte {
	switch {
	case c.due[HelloAck]:
		return c.controlFrame(h, HelloAck)
	case c.due[Hello]:
		return c.controlFrame(h, Hello)
	case c.due[ByeAck]:
		return c.controlFrame(h, ByeAck)
	case c.due[Bye] && c.byes > 0:
		return c.controlFrame(h, Bye)
	case c.state != Open && !c.due[Bye]:
		return nil
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackNow && (r.count > 0 || r.echo != 0) { // data has no SACK, and names no probe
			return c.ackFrame(h, Lane(l), false)
		}
	}
	for i := range c.lanes {
		l := Lane(Lanes - 1 - i) // replies first
		if q, ok := c.lanes[l].next(); ok {
			return c.dataFrame(h, l, q)
		}
	}
	for l := range c.lanes {
		if r := &c.lanes[l].receiver; r.ackDue(c.ackPolicy) {
			return c.ackFrame(h, Lane(l), false)
		}
	}
	for l := range c.lanes {
		if c.lanes[l].probe {
			return c.ackFrame(h, Lane(l), true)
		}
	}
	if c.due[Bye] {
		return c.controlFrame(h, Bye)
	}
	c.needsPump = false
	return nil
}

// controlFrame makes a frame of a handshake or a goodbye.
func (c *Conn) controlFrame(h *Header, kind Kind) []byte {
	*h = Header{Kind: kind, Src: c.local, Dst: c.remote}
	switch kind {
	case Hello:
		h.Dst, h.Sequence = 0, c.challenge
	case HelloAck:
		h.Dst, h.Ack = c.respondTo, c.response
		if c.respondTo != c.remote {
			h.Sequence = c.challenge
		}
	case ByeAck:
		h.Src, h.Dst = c.heard.Dst, c.heard.Src
	}
	return c.putControl(h)
}

// ackFrame makes an acknowledgement alone. A probe requests one, too.
func (c *Conn) ackFrame(h *Header, l Lane, probe bool) []byte {
	*h = Header{Kind: Ack, Lane: l, AckLane: l, AckNow: probe, Src: c.local, Dst: c.remote, Sequence: c.lanes[l].echo}
	if probe {
		h.Sequence = c.lanes[l].probeID
	}
	c.lanes[l].fillAck(h)
	c.lanes[l].fillSACK(h)
	return c.putControl(h)
}

// putControl writes a header to the memory of control frames.
func (c *Conn) putControl(h *Header) []byte {
	return c.control[:c.cfg.Headroom+h.put(c.control[c.cfg.Headroom:])]
}

// dataFrame puts a header before a frame's records, with the acknowledgement of the lane that
// needs one.
func (c *Conn) dataFrame(h *Header, l Lane, sequence uint32) []byte {
	s := &c.lanes[l].sender
	p := s.packet(sequence)
	*h = Header{Kind: Data, Lane: l, AckLane: l, Src: c.local, Dst: c.remote, Sequence: sequence}
	if other := Lanes - 1 - l; c.lanes[l].unacked == 0 && c.lanes[other].unacked > 0 {
		h.AckLane = other
	}
	h.AckNow = p.state == packetLost || s.requestsAck(sequence)
	c.lanes[h.AckLane].fillAck(h)
	h.put(p.buf.Bytes[c.cfg.Headroom:])
	return p.buf.Bytes[:c.cfg.Headroom+p.len]
}

func (c *Conn) onSent(now monotime.Time, h *Header) {
	c.due[h.Kind] = false
	switch h.Kind {
	case Data:
		s := &c.lanes[h.Lane].sender
		if s.packet(h.Sequence).sends > 0 {
			c.cfg.Counters.Retransmitted++
		}
		s.onSent(h.Sequence, h.AckNow, now, &c.rtt)
		c.lanes[h.AckLane].onAckSent()
		c.cfg.Counters.Sent++
	case Ack:
		if h.AckNow {
			c.lanes[h.Lane].onProbeSent(now)
		} else {
			c.lanes[h.Lane].echo = 0
		}
		c.lanes[h.AckLane].onAckSent()
		c.cfg.Counters.Acks++
	case Bye:
		c.onByeSent(now)
	}
}

// nextStream appends the frames that are like the last of n: of its lane, sent for the first time,
// with the same acknowledgement. It copies that one's header and changes what differs.
func (c *Conn) nextStream(now monotime.Time, frames [][]byte, n int) int {
	like := &c.batch[n-1]
	s := &c.lanes[like.Lane].sender
	headroom := c.cfg.Headroom
	header := (*[HeaderLen]byte)(frames[n-1][headroom:])
	for n < len(frames) && s.canStream() && c.lanes[Requests].unacked == 0 && c.lanes[Replies].unacked == 0 {
		p := s.packet(s.nxt)
		h := &c.batch[n]
		*h = *like
		h.Sequence, h.AckNow = s.nxt, s.requestsAck(s.nxt)
		b := p.buf.Bytes[:headroom+p.len]
		*(*[HeaderLen]byte)(b[headroom:]) = *header
		renumber(b[headroom:], h.Sequence, h.AckNow)
		frames[n] = b
		s.onSent(h.Sequence, h.AckNow, now, &c.rtt)
		c.cfg.Counters.Sent++
		n++
	}
	return n
}

// Refused takes back those of the n frames of the last NextBatch that could not be sent, from the
// first refused one on. NextBatch returns them again.
func (c *Conn) Refused(first, n int) {
	c.needsPump = true
	for _, h := range c.batch[first:n] {
		c.due[h.Kind] = true
		switch h.Kind {
		case Data:
			if c.lanes[h.Lane].onRefused(h.Sequence) {
				c.cfg.Counters.Retransmitted--
			}
			c.lanes[h.AckLane].unacked = max(c.lanes[h.AckLane].unacked, 1)
			c.cfg.Counters.Sent--
		case Ack:
			if h.AckNow {
				c.lanes[h.Lane].probe = true
			} else {
				c.lanes[h.AckLane].ackNow, c.lanes[h.AckLane].echo = true, h.Sequence
			}
			c.cfg.Counters.Acks--
		case Bye:
			c.byes--
		}
	}
}
