package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// Event is what a frame has brought.
type Event uint8

// The events.
const (
	Nothing       Event = iota
	Deliver             // the records are next in their lane: take them, and call Taken or Hold
	PeerRestarted       // the peer has begun anew: what was under way has failed
	PeerClosed          // the peer has ended: likewise
)

// Continues takes a frame that does nothing but continue its lane: it is the next one, nothing waits behind it, and what it
// acknowledges is known. It reports whether it was one; then its records are to be taken, as after Take. Most frames of a stream are, and
// need no look at the clock. With others nothing has happened yet, and Handle is to be called.
func (c *Conn) Continues(h *Header, records int) bool {
	to, from := &c.lanes[h.Lane].receiver, &c.lanes[h.AckLane].sender
	if h.Kind != Data || h.Dst != c.local || h.Src != c.remote || !to.isNext(h.Sequence) || !from.isStaleAck(h) || records > c.MaxRecord() {
		return false
	}
	c.offered = offer{} // what it acknowledges is old
	c.retries = 0
	to.onData(h)
	c.needsPump = c.needsPump || to.ackDue(c.ackPolicy)
	return true
}

// Stirred reports whether there may be something to send, or room for more, or another deadline, since Next returned nil. Most frames of
// a stream bring nothing of the kind.
func (c *Conn) NeedsPump() bool { return c.needsPump }

// Handle takes any frame.
func (c *Conn) Handle(now monotime.Time, h *Header, records []byte) Event {
	c.needsPump = true
	c.offered = offer{} // it may be done
	if len(records) > c.MaxRecord() {
		c.counters.TooLong++
		return Nothing
	}
	switch h.Kind {
	case Hello:
		c.helloAckDue, c.respondTo, c.response = true, h.Src, h.Sequence
		if h.Src == c.remote {
			c.retries = 0
		}
		return Nothing
	case HelloAck:
		return c.onHelloAck(h)
	case Bye:
		if h.Dst != c.local || h.Src != c.remote {
			c.counters.StaleIncarnation++
			return Nothing
		}
		c.reset()
		return PeerClosed
	}
	if h.Dst != c.local || h.Src != c.remote {
		return c.onStale(now)
	}
	c.retries = 0
	l := &c.lanes[h.AckLane]
	l.onAck(h, now, &c.rtt, c.cfg.Free)
	if h.Kind == Ack {
		if h.AckNow {
			c.lanes[h.Lane].ackNow = true
		}
		return Nothing
	}
	switch c.lanes[h.Lane].arrive(h, records, now, c.cfg.Alloc) {
	case inOrder:
		return Deliver
	case kept:
		c.counters.OutOfOrder++
	case duplicate:
		c.counters.Duplicate++
	case beyondWindow:
		c.counters.BeyondWindow++
	}
	return Nothing
}

// stray answers a frame that is not for this life, or of one that was not introduced: the peer has missed that this end has
// begun anew.
func (c *Conn) onStale(now monotime.Time) Event {
	c.counters.StaleIncarnation++
	if now.Sub(c.staleReplied) >= ackDelay || c.staleReplied.IsZero() {
		c.staleReplied = now
		c.helloDue = true
	}
	return Nothing
}

// welcomed hears of the peer's life. Only that which answers what was not answered before is its present one.
func (c *Conn) onHelloAck(h *Header) Event {
	if h.Dst == c.local && h.Sequence != 0 {
		c.helloAckDue, c.respondTo, c.response = true, h.Src, h.Sequence
	}
	if h.Dst != c.local || h.Ack != c.challenge {
		c.counters.StaleIncarnation++
		return Nothing
	}
	c.challenge = max(c.challenge+1, 1)
	c.state, c.helloDue, c.retries = Open, false, 0
	if c.remote == h.Src {
		return Nothing
	}
	event := Nothing
	if c.remote != 0 {
		c.resetLanes()
		event = PeerRestarted
	}
	c.remote = h.Src
	return event
}

// Taken moves a lane on behind the records that were taken.
func (c *Conn) Delivered(l Lane) {
	c.lanes[l].deliver(c.cfg.Free)
	c.needsPump = c.needsPump || c.lanes[l].receiver.ackNow
	c.counters.Delivered++
}

// Hold keeps the rest of the records that were not taken, until Following is asked for them again.
func (c *Conn) Hold(l Lane, rest []byte) {
	c.lanes[l].hold(rest, c.cfg.Alloc)
	c.needsPump = true
}

// Following returns records that are next in their lane, and came early or were held. After them call Taken or Hold.
func (c *Conn) Buffered(l Lane) (records []byte, ok bool) { return c.lanes[l].buffered() }

// Held reports whether a lane is held.
func (c *Conn) Held(l Lane) bool { return c.lanes[l].held }
