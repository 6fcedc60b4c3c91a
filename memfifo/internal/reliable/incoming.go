package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// Handle takes a received frame: its header and the records behind it.
func (c *Conn) Handle(now monotime.Time, h *Header, records []byte) Event {
	if len(records) > c.MaxRecord() {
		c.cfg.Counters.TooLong++
		return Nothing
	}
	if h.Kind > Ack {
		c.needsPump = true
		return c.onControl(now, h)
	}
	if c.state == Closing {
		return Nothing
	}
	if !c.IsCurrent(h) {
		c.needsPump = true
		c.onStale(now)
		return Nothing
	}
	c.silence.reset()
	if from := &c.lanes[h.AckLane].sender; h.Kind == Ack || !from.isOldAck(h) {
		c.needsPump = true
		from.onAck(h, now, &c.rtt, c.cfg.Free)
	}
	to := &c.lanes[h.Lane].receiver
	if h.Kind == Ack {
		if h.AckNow {
			to.onProbe(h)
		}
		return Nothing
	}
	deliver := to.arrive(h, records, now, &c.cfg)
	c.needsPump = c.needsPump || to.unacked == 1 || to.ackDue(c.ackPolicy) // the first one sets a deadline
	if deliver {
		return Deliver
	}
	return Nothing
}

// onControl takes a frame of a handshake or a goodbye.
func (c *Conn) onControl(now monotime.Time, h *Header) Event {
	switch h.Kind {
	case Hello:
		c.onHello(h)
	case HelloAck:
		return c.onHelloAck(now, h)
	case Bye:
		return c.onBye(h)
	case ByeAck:
		c.onByeAck(h)
	}
	return Nothing
}

// NeedsPump reports whether NextBatch may have something, or Available or Deadline may have
// changed, since NextBatch returned 0. Most frames of a stream change nothing of the kind.
func (c *Conn) NeedsPump() bool { return c.needsPump }

// Delivered moves a lane on behind the records that were processed.
func (c *Conn) Delivered(l Lane) {
	c.lanes[l].delivered(c.cfg.Free)
	c.needsPump = c.needsPump || c.lanes[l].ackNow
	c.cfg.Counters.Delivered++
}

// Hold keeps the rest of the records, which could not be processed, until Buffered returns them
// again.
func (c *Conn) Hold(l Lane, rest []byte) {
	c.lanes[l].hold(rest, c.cfg.Alloc)
	c.needsPump = true
}

// Buffered returns records that are next in their lane, and arrived out of order or were held.
// After them call Delivered or Hold.
func (c *Conn) Buffered(l Lane) (records []byte, ok bool) { return c.lanes[l].buffered() }
