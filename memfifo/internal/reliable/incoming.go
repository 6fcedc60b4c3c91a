package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// Handle takes a received frame: its header and the records behind it.
func (c *Conn) Handle(now monotime.Time, h *Header, records []byte) Event {
	if c.continues(h, len(records)) {
		return Deliver
	}
	return c.handle(now, h, records)
}

// continues handles a frame that does no more than continue its lane: the next one, with nothing
// behind it, and with an acknowledgement that is known. Most frames of a stream are such. It
// reports whether the frame is one; if not, nothing has changed.
func (c *Conn) continues(h *Header, records int) bool {
	to, from := &c.lanes[h.Lane].receiver, &c.lanes[h.AckLane].sender
	if h.Kind != Data || !c.isCurrent(h) || !to.isNext(h.Sequence) || !from.isOldAck(h) || records > c.MaxRecord() {
		return false
	}
	c.silence.reset()
	to.onData(h)
	c.needsPump = c.needsPump || to.ackDue(c.ackPolicy)
	return true
}

func (c *Conn) handle(now monotime.Time, h *Header, records []byte) Event {
	c.needsPump = true
	if len(records) > c.MaxRecord() {
		c.cfg.Counters.TooLong++
		return Nothing
	}
	switch h.Kind {
	case Hello:
		c.onHello(h)
		return Nothing
	case HelloAck:
		return c.onHelloAck(now, h)
	case Bye:
		return c.onBye(h)
	}
	if !c.isCurrent(h) {
		c.onStale(now)
		return Nothing
	}
	c.silence.reset()
	c.lanes[h.AckLane].onAck(h, now, &c.rtt, c.cfg.Free)
	switch {
	case h.Kind == Data && c.lanes[h.Lane].arrive(h, records, now, &c.cfg):
		return Deliver
	case h.Kind == Ack && h.AckNow:
		c.lanes[h.Lane].onProbe(h)
	}
	return Nothing
}

func (c *Conn) onBye(h *Header) Event {
	if !c.isCurrent(h) {
		c.cfg.Counters.StaleIncarnation++
		return Nothing
	}
	c.reset()
	return PeerClosed
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
