package memfifo

import (
	"cmp"
	"encoding/binary"

	"github.com/rawlane/rawlane/internal/race"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// take does what the records of a frame say, and those of the frames behind it that came early.
func (p *peer) take(lane reliable.Lane, records []byte) {
	for ok := true; ok; records, ok = p.conn.Buffered(lane) {
		rest, full := p.apply(lane, records)
		if rest == nil {
			p.conn.Delivered(lane)
			continue
		}
		p.conn.Hold(lane, rest)
		if full == nil || full.hold(p) {
			return
		}
	}
}

// apply does records until one has to wait: for room in a FIFO, or for replies to have gone. Then
// it returns what is left.
func (p *peer) apply(lane reliable.Lane, records []byte) (rest []byte, full *FIFO) {
	var r record
	for len(records) > 0 {
		if lane == reliable.Requests {
			if records = p.applyPushes(records); len(records) == 0 {
				break
			}
		}
		if !r.parse(records) {
			p.d.stats.Malformed++
			return nil, nil
		}
		records = r.next
		if lane == reliable.Replies {
			p.applyReply(&r)
			continue
		}
		if len(p.replies) >= maxReplies {
			return r.all, nil
		}
		if full := p.applyRequest(&r); full != nil {
			return r.all, full
		}
	}
	return nil, nil
}

// applyRequest returns the FIFO that has no room for it; then nothing was done.
func (p *peer) applyRequest(r *record) *FIFO {
	switch r.op {
	case opPut, opPutContinue:
		p.applyPut(r)
	case opPush:
		return p.applyPush(r)
	case opTryPush:
		p.applyTryPush(r)
	case opGet:
		p.applyGet(r)
	case opFetchAdd, opSwap, opCompareSwap:
		p.applyAtomic(r)
	case opFence:
		p.replyValue(r.fixed.u32(), 0, 0)
	default:
		p.d.stats.Malformed++
	}
	return nil
}

func (p *peer) applyPut(r *record) {
	at := &p.putFrom
	if r.op == opPut {
		*at = cursor{r.fixed.u16(), r.fixed.u64(), r.fixed.u64(), true}
	} else if !at.known {
		p.d.stats.Malformed++
		return
	}
	race.Acquire(p.d.ep) // the owner read it before it told the sender, by a message, to write
	if refusal := p.d.put(at.id, at.secret, at.off, r.data, r.flags&flagNotify != 0); refusal != 0 {
		p.refuse(at.id, refusal)
	}
	at.off += uint64(len(r.data))
}

func (p *peer) applyGet(r *record) {
	id, secret, off, requestID, n := r.fixed.u16(), r.fixed.u64(), r.fixed.u64(), r.fixed.u32(), uint64(r.fixed.u32())
	w, refusal := p.d.checkWindow(id, secret, off, n, Read)
	if refusal != 0 || n == 0 {
		p.replyValue(requestID, 0, refusal)
		return
	}
	p.reply(reply{op: opData, requestID: requestID, w: w, secret: w.key.Secret, off: off, n: n})
}

func (p *peer) applyAtomic(r *record) {
	id, secret, off, requestID, operand := r.fixed.u16(), r.fixed.u64(), r.fixed.u64(), r.fixed.u32(), r.fixed.u64()
	expected := uint64(0)
	if r.op == opCompareSwap {
		expected = r.fixed.u64()
	}
	old, refusal := p.d.atomic(r.op, id, secret, off, operand, expected)
	p.replyValue(requestID, old, refusal)
}

// applyTryPush appends a record if there is room, and says whether.
func (p *peer) applyTryPush(r *record) {
	id, secret, requestID := r.fixed.u16(), r.fixed.u64(), r.fixed.u32()
	f, h, refusal := p.d.checkPush(id, secret, len(r.data))
	if f != nil && !f.append(nil, r.data) {
		refusal = Full
	}
	p.replyValue(requestID, 0, refusal)
	if h != nil {
		p.call(h, r.data, r.next)
	}
}

// call has a handler take a record; behind is what follows it in the frame. If the function does
// not return, as it panics or ends its goroutine, the record counts as taken, and what is behind it
// is held until the peer is advanced.
func (p *peer) call(h *Handler, rec, behind []byte) {
	returned := false
	defer func() {
		if !returned {
			p.dropPartial()
			p.conn.Hold(reliable.Requests, behind)
			p.pumpLater()
		}
	}()
	h.call(p, rec)
	returned = true
}

// replyValue answers a request that has a value or was refused.
func (p *peer) replyValue(requestID uint32, value uint64, refusal Refusal) {
	op := opValue
	if refusal != 0 {
		op = opError
		p.d.stats.Refused++
	}
	p.reply(reply{op: op, requestID: requestID, value: value, refusal: refusal})
}

// applyPush appends a record, or has its handler take it, or keeps a part of one. It returns the
// FIFO if that has no room for it.
func (p *peer) applyPush(r *record) (full *FIFO) {
	id, secret, total := r.fixed.u16(), r.fixed.u64(), int(r.fixed.u32())
	first, last := r.flags&flagFirst != 0, r.flags&flagLast != 0
	f, h, refusal := p.d.checkPush(id, secret, total)
	if !first {
		refusal = cmp.Or(p.partRefused, refusal)
	}
	if p.partRefused = refusal; refusal != 0 {
		if last { // once for all its parts
			p.partRefused = 0
			p.dropPartial()
			p.refuse(id, refusal)
		}
		return nil
	}
	data := r.data
	if !first || !last {
		if data = p.assemble(r.data, total, first, last); data == nil {
			return nil
		}
	} else if len(data) != total {
		p.d.stats.Malformed++
		return nil
	}
	if h != nil {
		p.call(h, data, r.next)
	} else if !f.append(p, data) {
		return f
	}
	p.dropPartial()
	return nil
}

// pushHead is how long a push is without its data.
const pushHead = headLen + 2 + 8 + 4

// applyPushes appends the records at the beginning of a frame that are whole, and for the FIFO that
// was pushed to last: as many as there is room for. It returns what applyPush has to look at.
func (p *peer) applyPushes(records []byte) (rest []byte) {
	f := p.d.recentQ
	if f == nil || p.partial != nil || p.partRefused != 0 || f.senders.first() != nil || len(p.replies) >= maxReplies {
		return records
	}
	run, longest := f.ring.begin(), f.ring.longest()
	for len(records) >= pushHead && records[0] == byte(opPush) && records[1] == flagFirst|flagLast {
		fixed, n := reader{records[headLen:pushHead]}, int(binary.BigEndian.Uint16(records[2:]))
		if fixed.u16() != f.key.ID || fixed.u64() != f.key.Secret || fixed.u32() != uint32(n) ||
			n > longest || n > len(records)-pushHead || !run.append(records[pushHead:pushHead+n]) {
			break
		}
		records = records[pushHead+n:]
	}
	if run.publish() && f.waiting.Load() > 0 {
		f.waiters.wakeOne()
	}
	return records
}

// assemble collects the parts of a record. It returns the whole of it with the last one; but it
// does not keep that one, which comes again if the FIFO has no room.
func (p *peer) assemble(part []byte, total int, first, last bool) []byte {
	if first {
		p.partial = p.partial[:0]
	}
	if sum := len(p.partial) + len(part); sum > total || last && sum != total {
		p.d.stats.Malformed++
		if last {
			p.dropPartial()
		}
		return nil
	}
	if cap(p.partial) < total {
		p.partial = append(p.d.recordBuffer(total), p.partial...)
	}
	if last {
		return append(p.partial, part...)
	}
	p.partial = append(p.partial, part...)
	return nil
}

// dropPartial gives the memory of a record's parts back.
func (p *peer) dropPartial() {
	if p.partial != nil {
		p.d.freeRecord(p.partial)
		p.partial = nil
	}
}
