package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// goodbye is what a connection knows of its own bye, and of the last one that it owes an answer.
type goodbye struct {
	byes        uint          // Closing: how often it was sent
	byeDeadline monotime.Time // Closing, with byes > 0: when to say it again
	heard       Header        // a bye, if due[ByeAck]
}

// Close queues a bye, if the peer is known, behind the acknowledgements and data that may go, and
// takes no more data. The bye is repeated until the peer has heard it, and maxByes times at most:
// the connection is Idle then.
func (c *Conn) Close() {
	if c.state != Open {
		c.reset()
		return
	}
	c.state, c.byes, c.due[Bye] = Closing, 0, true
	for i := range c.lanes {
		l := &c.lanes[i]
		l.ackNow = l.ackNow || l.unacked > 0
		l.release()
	}
}

// Closing reports whether a bye is to be heard, or the answer to the peer's to be sent.
func (c *Conn) Closing() bool { return c.state == Closing || c.due[ByeAck] }

func (c *Conn) onByeSent(now monotime.Time) {
	c.byeDeadline = now.Add(backOff(baseRTO(&c.rtt, c.cfg.rtoLimit()), c.byes))
	c.byes++
}

// advanceGoodbye says it again, or gives up: the peer finds out by its timeout.
func (c *Conn) advanceGoodbye(now monotime.Time) {
	switch {
	case c.byes == 0 || now.Before(c.byeDeadline):
	case c.byes >= maxByes:
		c.reset()
	default:
		c.due[Bye] = true
	}
}

// onBye owes an answer also for a bye of a former incarnation, or to one: its sender waits for it.
func (c *Conn) onBye(h *Header) Event {
	event := Nothing
	if c.IsCurrent(h) {
		if c.state != Closing {
			event = PeerClosed
		}
		c.reset()
	} else {
		c.cfg.Counters.StaleIncarnation++
	}
	c.heard, c.due[ByeAck] = *h, h.Dst != 0
	return event
}

func (c *Conn) onByeAck(h *Header) {
	if c.state != Closing || !c.IsCurrent(h) {
		c.cfg.Counters.StaleIncarnation++
		return
	}
	c.reset()
}
