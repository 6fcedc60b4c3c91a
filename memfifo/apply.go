package memfifo

import (
	"sync/atomic"
	"unsafe"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// take does what the records of a frame say, and of those that came early behind it.
func (p *peer) take(now monotime.Time, lane reliable.Lane, records []byte) {
	for ok := true; ok; records, ok = p.conn.Buffered(lane) {
		rest, full := p.apply(now, lane, records)
		if rest != nil {
			p.conn.Hold(lane, rest)
			if full != nil && !full.hold(p) {
				continue
			}
			return
		}
		p.conn.Delivered(lane)
	}
}

// apply does records until one has to wait: for a FIFO to have room, or for answers to have gone. Then it returns what is left.
func (p *peer) apply(now monotime.Time, lane reliable.Lane, records []byte) (rest []byte, full *FIFO) {
	var r record
	for len(records) > 0 {
		if !r.parse(records) {
			p.d.stats.Malformed++
			return nil, nil
		}
		records = r.next
		if lane == reliable.Replies {
			p.applyReply(&r)
			continue
		}
		if len(p.answers) >= maxAnswers {
			p.blocked = true
			return r.all, nil
		}
		switch r.op {
		case opPut, opMore:
			p.applyPut(now, &r)
		case opPush:
			if f := p.applyPush(now, &r); f != nil {
				return r.all, f
			}
		case opTry:
			p.applyTry(now, &r)
		case opGet, opAdd, opSwap, opCompare:
			p.applyCall(now, &r)
		case opFence:
			p.reply(now, answer{op: opValue, tag: r.fixed.u32()})
		default:
			p.d.stats.Malformed++
		}
	}
	return nil, nil
}

func (p *peer) applyPut(now monotime.Time, r *record) {
	at := &p.putFrom
	if r.op == opPut {
		*at = cursor{r.fixed.u16(), r.fixed.u64(), r.fixed.u64(), true}
	} else if !at.known {
		p.d.stats.Malformed++
		return
	}
	n, off := uint64(len(r.data)), at.off
	at.off += n
	w, refusal := p.d.check(at.id, at.secret, off, n, Write)
	if refusal != 0 {
		p.refuse(now, at.id, refusal)
		return
	}
	w.write(off, r.data)
	w.changed(r.flags&flagNotify != 0)
}

// refuse tells the peer that an operation was refused for whose answer nobody waits.
func (p *peer) refuse(now monotime.Time, id uint16, reason Refusal) {
	p.d.stats.Refused++
	p.reply(now, answer{op: opRefused, id: id, reason: reason})
}

// applyCall answers an operation on a word, or a Get.
func (p *peer) applyCall(now monotime.Time, r *record) {
	id, secret, off, tag := r.fixed.u16(), r.fixed.u64(), r.fixed.u64(), r.fixed.u32()
	n, right := uint64(8), Atomic
	if r.op == opGet {
		n, right = uint64(r.fixed.u32()), Read
	}
	w, refusal := p.d.check(id, secret, off, n, right)
	if refusal == 0 && r.op != opGet && off%8 != 0 {
		refusal = Misaligned
	}
	switch {
	case refusal != 0:
		p.d.stats.Refused++
		p.reply(now, answer{op: opError, tag: tag, reason: refusal})
	case r.op == opGet && n == 0:
		p.reply(now, answer{op: opValue, tag: tag})
	case r.op == opGet:
		p.reply(now, answer{op: opData, tag: tag, w: w, off: off, n: n})
	default:
		operand := r.fixed.u64()
		old := w.operate(r.op, off, operand, r.fixed)
		w.changed(r.flags&flagNotify != 0)
		p.reply(now, answer{op: opValue, tag: tag, value: old})
	}
}

// applyTry appends a record if there is room, and says whether.
func (p *peer) applyTry(now monotime.Time, r *record) {
	id, secret, tag := r.fixed.u16(), r.fixed.u64(), r.fixed.u32()
	f, refusal := p.d.checkFIFO(id, secret, len(r.data))
	if refusal == 0 && !f.append(r.data) {
		refusal = Full
	}
	if refusal != 0 {
		p.d.stats.Refused++
		p.reply(now, answer{op: opError, tag: tag, reason: refusal})
		return
	}
	p.reply(now, answer{op: opValue, tag: tag})
}

// operate does an atomic operation on a word, and returns what was there.
func (w *Window) operate(op opcode, off, operand uint64, rest reader) (old uint64) {
	word := (*uint64)(unsafe.Pointer(&w.mem[off]))
	switch op {
	case opAdd:
		return atomic.AddUint64(word, operand) - operand
	case opSwap:
		return atomic.SwapUint64(word, operand)
	}
	for expected := rest.u64(); ; {
		old = atomic.LoadUint64(word)
		if old != expected || atomic.CompareAndSwapUint64(word, expected, operand) {
			return old
		}
	}
}

// applyReply ends a call, or notes a refusal.
func (p *peer) applyReply(r *record) {
	if r.op == opRefused {
		id, reason := r.fixed.u16(), Refusal(r.fixed.u8())
		if p.refused == nil {
			p.refused = &AccessError{Node: p.node, ID: id, Reason: reason}
		}
		p.refused.Count++
		return
	}
	if r.op != opData && r.op != opValue && r.op != opError {
		p.d.stats.Malformed++
		return
	}
	c := p.calls[r.fixed.u32()]
	if c == nil {
		p.d.stats.Orphans++
		return
	}
	switch r.op {
	case opData:
		at := int(r.fixed.u32())
		if at != len(c.buf)-c.left || len(r.data) > c.left {
			p.d.stats.Malformed++
			return
		}
		c.left -= copy(c.buf[at:], r.data)
		if c.left > 0 {
			return
		}
	case opValue:
		c.value = r.fixed.u64()
	case opError:
		c.reason = Refusal(r.fixed.u8())
	}
	delete(p.calls, c.tag)
	p.flushed = max(p.flushed, c.flushes) // before its caller sees it: the peer may leave now
	c.completion.Complete(nil)
}
