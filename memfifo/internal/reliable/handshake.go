package reliable

import "github.com/rawlane/rawlane/internal/monotime"

// handshake is what a connection knows of who is at the other end.
type handshake struct {
	challenge     uint32        // that the peer's incarnation has to answer; not 0
	respondTo     uint32        // the incarnation that sent the last challenge
	response      uint32        // that challenge
	helloSent     monotime.Time // Handshaking: when the first one was queued
	helloDeadline monotime.Time // Handshaking: when to repeat the hello
	helloBackoff  uint          // hellos without an answer
	staleReplied  monotime.Time // when a stale frame was answered last
}

// beginHandshake queues the first hello, as there is data to send.
func (c *Conn) beginHandshake(now monotime.Time) {
	c.state, c.due[Hello], c.helloBackoff = Handshaking, true, 0
	c.helloSent, c.helloDeadline = now, now.Add(initialRTO)
}

func (c *Conn) advanceHandshake(now monotime.Time) Event {
	if now.Before(c.helloDeadline) {
		return Nothing
	}
	silent := c.silence.expired(now, c.helloDeadline, c.cfg.PeerTimeout)
	c.due[Hello] = true
	c.helloBackoff++
	c.helloDeadline = now.Add(backOff(initialRTO, c.helloBackoff))
	if silent {
		return PeerSilent
	}
	return Nothing
}

// onHello owes the response. It proves nothing about the peer.
func (c *Conn) onHello(h *Header) {
	c.due[HelloAck], c.respondTo, c.response = true, h.Src, h.Sequence
	if h.Src == c.remote {
		c.silence.reset()
	}
}

// onHelloAck learns the peer's incarnation, if the response is that to the current challenge.
func (c *Conn) onHelloAck(now monotime.Time, h *Header) Event {
	if h.Dst == c.local && h.Sequence != 0 {
		c.due[HelloAck], c.respondTo, c.response = true, h.Src, h.Sequence
	}
	if h.Dst != c.local || h.Ack != c.challenge {
		c.cfg.Counters.StaleIncarnation++
		return Nothing
	}
	c.challenge = max(c.challenge+1, 1)
	if c.state == Handshaking && c.helloBackoff == 0 {
		c.rtt.Update(now.Sub(c.helloSent))
	}
	c.state, c.due[Hello] = Open, false
	c.silence.reset()
	former := c.remote
	c.remote = h.Src
	if former == 0 || former == h.Src {
		return Nothing
	}
	c.resetLanes()
	return PeerRestarted
}

// IsCurrent reports whether a frame is between the current incarnations.
func (c *Conn) IsCurrent(h *Header) bool { return h.Dst == c.local && h.Src == c.remote }

// onStale answers a frame that is not between the current incarnations with a challenge: one of
// the two ends has missed the other's restart.
func (c *Conn) onStale(now monotime.Time) {
	c.cfg.Counters.StaleIncarnation++
	if now.Sub(c.staleReplied) >= ackDelay || c.staleReplied.IsZero() {
		c.staleReplied = now
		c.due[Hello] = true
	}
}
