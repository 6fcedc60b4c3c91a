package mux

import "math/bits"

// Control records are owed until there is room for them: a stream says by a bit which it owes, and
// is in its peer's list. So they take no memory of their own, however long the peer takes nothing,
// and a window update that waits is the newest one when it goes.

// owed is the control records that a stream owes, in the order in which they go.
type owed uint8

const (
	owesAccept owed = 1 << iota
	owesWindow
	owesFin
	owesClose
	owesReset
)

// Control is a control record on its way to a node.
type Control struct {
	node   uint16
	stream *Stream // nil: an answer to a record of no stream
	owed   owed
	record Record
}

// Append appends the record to b.
func (c *Control) Append(b []byte) []byte { return c.record.Append(b) }

// owe has a control record be sent. A Reset goes in place of all others.
func (s *Stream) owe(o owed) {
	if o == owesReset {
		s.owes = 0
	}
	s.owes |= o
	if !s.owing.In() {
		s.m.peer(s.name.node).owing.PushBack(&s.owing, s)
	}
}

// answer owes an answer to a record of a stream that there is not. Many such records in a row are
// answered once.
func (m *Mux) answer(n name, kind Kind, reason Reason) {
	p := m.peer(n.node)
	if len(p.answers) >= maxAnswers || len(p.answers) > 0 && p.last == n {
		return
	}
	p.last = n
	p.answers = append(p.answers, Control{
		node: n.node, record: Record{Kind: kind, Dialer: n.dialed, Reason: reason, Stream: n.number},
	})
}

// Owes reports whether control records are to be sent to a node.
func (m *Mux) Owes(node uint16) bool {
	p := m.peers[node]
	return p != nil && (p.owing.Front() != nil || len(p.answers) > 0)
}

// Next returns the next control record for a node. The caller sends it and calls Sent, or Unsent.
func (m *Mux) Next(node uint16) (c Control, ok bool) {
	p := m.peers[node]
	if p == nil {
		return c, false
	}
	for s := p.owing.Front(); s != nil; s = p.owing.Front() {
		if s.owes == 0 {
			p.owing.PopFront()
			continue
		}
		c = Control{node: node, stream: s, owed: 1 << bits.TrailingZeros8(uint8(s.owes))}
		s.owes &^= c.owed
		if s.owes == 0 {
			p.owing.PopFront()
		}
		c.record = s.control(c.owed)
		return c, true
	}
	if len(p.answers) > 0 {
		c, p.answers = p.answers[0], p.answers[1:]
		return c, true
	}
	return c, false
}

// control makes a control record of the stream.
func (s *Stream) control(o owed) Record {
	r := Record{Dialer: s.name.dialed, Stream: s.name.number}
	switch o {
	case owesAccept:
		r.Kind, r.Limit = Accept, s.limit
	case owesWindow:
		s.limit = s.read + uint64(s.m.cfg.Window)
		r.Kind, r.Limit = Window, s.limit
	case owesFin:
		r.Kind = Fin
	case owesClose:
		r.Kind = Close
	case owesReset:
		r.Kind, r.Reason = Reset, s.resetReason
	}
	return r
}

// Sent notes that a control record was sent.
func (m *Mux) Sent(c *Control, out []Event) []Event {
	s := c.stream
	if s == nil || c.owed != owesAccept {
		return out
	}
	switch {
	case s.state == Pending:
		m.counters.Accepted++
		return s.listener.accepted(s, out)
	case s.unread && !s.listener.closed: // the dialer has sent and closed before this was noted
		m.counters.Accepted++
		s.listener.pending++
		s.listener.queue.PushBack(&s.wait, s)
		return append(out, Event{Kind: Acceptable, Listener: s.listener})
	}
	return out
}

// Unsent takes a control record back that was not sent: Next returns it again.
func (m *Mux) Unsent(c *Control) {
	s := c.stream
	switch {
	case s == nil:
		p := m.peer(c.node)
		p.answers = append(p.answers, *c)
	case s.owes&owesReset == 0 && s.reason != PeerDown:
		s.owe(c.owed)
	}
}
