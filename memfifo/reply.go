package memfifo

import (
	"slices"

	"github.com/rawlane/rawlane/internal/race"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// reply is one that waits for room: a value, a refusal, or what is left of a Get.
type reply struct {
	op        opcode
	requestID uint32
	value     uint64
	refusal   Refusal
	id        uint16 // of the window or FIFO that has refused
	w         *Window
	secret    uint64 // with which the Get came: a window that was rebound has another one
	off, n    uint64 // what is left to be read
	at        uint32 // how much of a Get was sent
}

// reply answers a request: at once if there is room.
func (p *peer) reply(r reply) {
	p.replies = append(p.replies, r)
	p.sendReplies()
}

// refuse tells the peer that an operation was refused that has no reply.
func (p *peer) refuse(id uint16, refusal Refusal) {
	p.d.stats.Refused++
	p.reply(reply{op: opRefused, id: id, refusal: refusal})
}

// sendReplies puts replies into frames as far as there is room.
func (p *peer) sendReplies() {
	for len(p.replies) > 0 && p.sendReply(&p.replies[0]) {
		p.replies = append(p.replies[:0], p.replies[1:]...)
	}
}

// sendReply returns false if not all of it is in frames.
func (p *peer) sendReply(r *reply) bool {
	if r.op == opData {
		if !r.w.revoked && r.w.key.Secret == r.secret {
			return p.sendData(r)
		}
		*r = reply{op: opError, requestID: r.requestID, refusal: NoSuchID}
	}
	b := p.conn.Reserve(reliable.Replies, r.op.Size(0))
	if b == nil {
		return false
	}
	w := begin(b, r.op, 0, 0)
	switch r.op {
	case opValue:
		w.u32(r.requestID)
		w.u64(r.value)
	case opError:
		w.u32(r.requestID)
		w.u8(uint8(r.refusal))
	case opRefused:
		w.u16(r.id)
		w.u8(uint8(r.refusal))
		return true
	}
	p.conn.Uncork(reliable.Replies) // a caller waits for it
	return true
}

// sendData sends what there is room for of a Get's reply.
func (p *peer) sendData(r *reply) bool {
	race.Acquire(p.d.ep) // the owner wrote it before it told the reader, by a message
	for r.n > 0 {
		room := p.conn.Available(reliable.Replies, opData.Size(min(int(r.n), 64)))
		if room == 0 {
			return false
		}
		n := min(int(r.n), room-opData.Size(0))
		w := begin(p.conn.Reserve(reliable.Replies, opData.Size(n)), opData, 0, n)
		w.u32(r.requestID)
		w.u32(r.at)
		r.w.read(w.b[:n], r.off)
		r.off, r.n, r.at = r.off+uint64(n), r.n-uint64(n), r.at+uint32(n)
	}
	p.conn.Uncork(reliable.Replies)
	return true
}

// applyReply completes a work request, or notes a refusal.
func (p *peer) applyReply(r *record) {
	switch r.op {
	case opRefused:
		p.noteRefusal(r.fixed.u16(), Refusal(r.fixed.u8()))
		return
	case opData, opValue, opError:
	default:
		p.d.stats.Malformed++
		return
	}
	wr := p.pending[r.fixed.u32()]
	if wr == nil {
		p.d.stats.Orphans++
		return
	}
	var err error
	switch r.op {
	case opData:
		at := int(r.fixed.u32())
		if at != wr.received || len(r.data) > len(wr.buf)-at {
			p.d.stats.Malformed++
			return
		}
		wr.received += copy(wr.buf[at:], r.data)
		if wr.received < len(wr.buf) {
			return
		}
	case opValue:
		wr.value = r.fixed.u64()
	case opError:
		err = wr.refused(Refusal(r.fixed.u8()))
	}
	delete(p.pending, wr.requestID)
	// The reply is behind all refusals of what was done before. This is noted before its caller
	// returns: the peer may leave after that.
	p.confirmed = max(p.confirmed, wr.issued)
	wr.complete(err)
}

// noteRefusal has the next Flush tell of a refusal, and tellRefused Config.Refused.
func (p *peer) noteRefusal(id uint16, refusal Refusal) {
	count := 1
	k := slices.IndexFunc(p.refused, func(e *AccessError) bool { return e.ID == id })
	if k >= 0 {
		count += p.refused[k].Count
	}
	if p.d.cfg.Refused != nil {
		p.untold = append(p.untold, &AccessError{p.node, id, refusal, count}) // who is told may keep it
	}
	switch {
	case k >= 0:
		p.refused[k].Count = count
	case len(p.refused) < maxRefused:
		p.refused = append(p.refused, &AccessError{p.node, id, refusal, count})
	default:
		p.refused[0].Count++
	}
}

// tellRefused tells Config.Refused of each refusal that has come, also if it does not return from
// one, behind the message: else that came again. No Flush returns before, as the caller holds d.mu.
func (p *peer) tellRefused() {
	if len(p.untold) == 0 {
		return
	}
	e := p.untold[0]
	p.untold = p.untold[1:]
	defer p.tellRefused()
	p.d.cfg.Refused(e)
}
