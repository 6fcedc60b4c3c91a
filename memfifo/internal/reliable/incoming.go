package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// Event is what a frame has brought.
type Event uint8

// The events.
const (
	Nothing   Event = iota
	Take            // the records are next in their lane: take them, and call Taken or Hold
	Restarted       // the peer has begun anew: what was under way has failed
	Left            // the peer has ended: likewise
)

// Continues takes a frame that does nothing but continue its lane: it is the next one, nothing waits behind it, and what it
// acknowledges is known. It reports whether it was one; then its records are to be taken, as after Take. Most frames of a stream are, and
// need no look at the clock. With others nothing has happened yet, and Handle is to be called.
func (c *Conn) Continues(h *Header, records int) bool {
	to, from := &c.lanes[h.Lane].receiver, &c.lanes[h.AckLane].sender
	if h.Kind != Data || h.To != c.mine || h.From != c.theirs || !to.continues(h.Sequence) || !from.knows(h) || records > c.Largest() {
		return false
	}
	c.out = pick{} // what it acknowledges is old
	c.tries = 0
	to.owe(h)
	c.stirred = c.stirred || to.wants(c.company)
	return true
}

// Stirred reports whether there may be something to send, or room for more, or another deadline, since Next returned nil. Most frames of
// a stream bring nothing of the kind.
func (c *Conn) Stirred() bool { return c.stirred }

// Handle takes any frame.
func (c *Conn) Handle(now monotime.Time, h *Header, records []byte) Event {
	c.stirred = true
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
	case Bye:
		if h.To != c.mine || h.From != c.theirs {
			c.counters.Stray++
			return Nothing
		}
		c.giveUp()
		return Left
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
func (c *Conn) stray(now monotime.Time) Event {
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
	c.stirred = c.stirred || c.lanes[l].receiver.now
	c.counters.Taken++
}

// Hold keeps the rest of the records that were not taken, until Following is asked for them again.
func (c *Conn) Hold(l Lane, rest []byte) {
	c.lanes[l].hold(rest, c.cfg.Alloc)
	c.stirred = true
}

// Following returns records that are next in their lane, and came early or were held. After them call Taken or Hold.
func (c *Conn) Following(l Lane) (records []byte, ok bool) { return c.lanes[l].following() }

// Held reports whether a lane is held.
func (c *Conn) Held(l Lane) bool { return c.lanes[l].held }
