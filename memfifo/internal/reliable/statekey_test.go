package reliable

import (
	"encoding/binary"
	"slices"

	"github.com/rawlane/rawlane/internal/monotime"
)

// key is all of a state that matters.
func (w *world) key(b []byte) []byte {
	b = append(b, byte(w.records[0]), byte(w.records[1]), byte(w.losses), byte(w.duplicates), byte(w.overtakings),
		byte(w.early), byte(w.restarts), byte(w.holds), byte(w.lives))
	for i := range w.streams {
		s := &w.streams[i]
		b = append(b, s.from, s.sent, s.got, flag8(s.begun))
	}
	for i, e := range w.ends {
		b = append(b, byte(e.out), byte(e.in+1), flag8(e.held), byte(e.told))
		b = e.c.key(b, w.ends[1-i].c, w.now)
		for _, frame := range w.inTransit[i] {
			b = appendFrame(append(b, byte(len(frame))), frame, w.ends[1-i].c, e.c)
		}
	}
	return b
}

// appendFrame appends a frame. Numbers of challenges and probes count from the present ones.
func appendFrame(b, frame []byte, from, to *Conn) []byte {
	var h Header
	_ = Parse(frame, &h)
	fromNow, toNow := h.Src == from.local, h.Dst == to.local
	switch {
	case h.Kind == Hello || h.Kind == HelloAck:
		h.Sequence = since(h.Sequence, from.challenge, fromNow && h.Sequence != 0)
		h.Ack = since(h.Ack, to.challenge, toNow && h.Kind == HelloAck)
	case h.Kind == Ack && h.AckNow:
		h.Sequence = since(h.Sequence, from.lanes[h.Lane].probeID, fromNow)
	case h.Kind == Ack:
		h.Sequence = since(h.Sequence, to.lanes[h.AckLane].probeID, toNow && h.Sequence != 0)
	}
	n := len(b)
	b = slices.Grow(b, maxAckLen)
	b = b[:n+h.put(b[n:n+maxAckLen])]
	if h.Kind == Data {
		b = append(b, frame[HeaderLen:]...)
	}
	return b
}

// since counts a number from the present one; 0: it does not matter.
func since(number, present uint32, matters bool) uint32 {
	if !matters {
		return 0
	}
	return number - present + 1<<31
}

// key appends what of a connection matters, at rest: nothing is left to be sent at once.
func (c *Conn) key(b []byte, peer *Conn, now monotime.Time) []byte {
	b = binary.BigEndian.AppendUint32(b, c.local)
	b = binary.BigEndian.AppendUint32(b, c.remote)
	quick := now.Sub(c.staleReplied) < ackDelay && !c.staleReplied.IsZero()
	b = append(b, byte(c.state), flag8(c.rtt.HasSample()), flag8(c.helloBackoff == 0), flag8(quick))
	var at []monotime.Time
	if c.state == Handshaking {
		at = append(at, c.helloDeadline)
	}
	for i := range c.lanes {
		l := &c.lanes[i]
		b = l.sender.key(b, c, now)
		b = l.receiver.key(b, peer.lanes[i].probeID)
		if c.state != Open {
			continue
		}
		if l.awaitsAck() {
			at = append(at, l.rtoDeadline)
		}
		if tail, set := l.tailDeadline(&c.rtt); set {
			at = append(at, tail)
		}
		if l.unacked > 0 {
			at = append(at, l.ackDeadline)
		}
	}
	for i, t := range at { // their order
		b = append(b, flag8(now.Before(t)))
		for _, other := range at[:i] {
			b = append(b, flag8(t.Before(other)))
		}
	}
	return append(b, 0xff)
}

func (s *sender) key(b []byte, c *Conn, now monotime.Time) []byte {
	interval := min(s.reno.Window()/acksPerWindow, 4) // further ones do not show with so few frames
	b = append(b, byte(s.una), byte(s.nxt), byte(s.queued), byte(s.fill), flag8(s.uncorked), flag8(s.probe),
		byte(s.creditLimit-s.una), byte(s.ackRequestEnd), byte(s.reno.Phase()), flag8(before(s.una, s.recoveryPoint)),
		byte(interval), flag8(s.sampled)|flag8(s.progressed)<<1, flag8(s.reorderAt.IsZero()))
	var probed []monotime.Time // of the probes that may be answered
	for i := range uint32(len(s.probed)) {
		e := s.probed[(s.probeID-i)%uint32(len(s.probed))]
		known := e.id == s.probeID-i && !e.at.IsZero()
		if known {
			probed = append(probed, e.at)
		}
		b = append(b, flag8(known))
	}
	late := s.newest.trip + reorderingWindow(&c.rtt)
	for q := s.una; q != s.nxt; q++ {
		p := s.packet(q)
		since := 0 // how many of the probes were sent since
		for _, at := range probed {
			since += int(flag8(p.sentAt.Before(at)))
		}
		b = append(b, byte(p.state), byte(min(p.sends, 3)), byte(since), flag8(p.rtoOnly)|flag8(s.overtaken(q, p))<<1|
			flag8(now.Before(p.sentAt.Add(late)))<<2|flag8(p.sentAt.Before(s.recoverySince))<<3)
	}
	return b
}

func (r *receiver) key(b []byte, probeID uint32) []byte {
	b = append(b, byte(r.nxt), byte(r.count), byte(len(r.rest)), flag8(r.rest != nil), byte(r.unacked), flag8(r.ackRequested), flag8(r.ackNow))
	for i := range uint32(8) {
		b = append(b, flag8(r.outOfOrder[(r.nxt+i)%ReorderWindow].Bytes != nil))
	}
	return binary.BigEndian.AppendUint32(b, since(r.echo, probeID, r.echo != 0))
}

func flag8(b bool) byte {
	if b {
		return 1
	}
	return 0
}
