package memfifo

import (
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// fit says how far encode came.
type fit uint8

const (
	whole     fit = iota // all of the work request is in frames
	noRoom               // the connection's window is full
	batchFull            // enough full frames for one call of the link
)

// encode turns a work request into records, as far as there is room.
func (p *peer) encode(wr *workRequest) fit {
	if wr.op.HasReply() {
		return p.encodeRequest(wr)
	}
	return p.encodeParts(&wr.request)
}

// encodeParts cuts a put or push into parts, one record each. It leaves in the request what is not
// in frames.
func (p *peer) encodeParts(rq *request) fit {
	for {
		op := p.partOpcode(rq)
		n := p.partLen(op, len(rq.data))
		if n < 0 {
			return noRoom
		}
		rq.write(p.conn.Reserve(reliable.Requests, op.Size(n)), op, rq.partFlags(n), rq.data[:n], 0)
		if rq.op == opPut {
			rq.off += uint64(n)
			p.putTo = cursor{rq.key.ID, rq.key.Secret, rq.off, true}
		}
		p.issued++
		if n == len(rq.data) {
			return whole
		}
		rq.begun, rq.data = true, rq.data[n:]
		if p.conn.BatchReady(reliable.Requests) {
			return batchFull
		}
	}
}

// encodeWhole puts a put or push into frames that have room for all of it. The first of them may
// fill a batch.
func (p *peer) encodeWhole(rq *request) bool {
	got := p.encodeParts(rq)
	for got == batchFull {
		got = p.encodeParts(rq)
	}
	return got == whole
}

// encodePushes puts the first records into one frame, whole ones, and returns how many: 0 if the
// connection's window is full, or the first one is longer than a frame.
func (p *peer) encodePushes(key Key, recs [][]byte) (n int) {
	room := p.conn.Available(reliable.Requests, opPush.Size(len(recs[0])))
	size := 0
	for n < len(recs) && size+opPush.Size(len(recs[n])) <= room {
		size += opPush.Size(len(recs[n]))
		n++
	}
	if n == 0 {
		return 0
	}
	b := p.conn.Reserve(reliable.Requests, size)
	for _, rec := range recs[:n] {
		w := begin(b, opPush, flagFirst|flagLast, len(rec))
		w.u16(key.ID)
		w.u64(key.Secret)
		w.u32(uint32(len(rec)))
		b = w.b[copy(w.b, rec):]
	}
	p.issued += uint64(n)
	return n
}

// partOpcode returns the opcode of a request's next part. A put that goes on where the last one
// ended takes the short one.
func (p *peer) partOpcode(rq *request) opcode {
	if c := &p.putTo; rq.op == opPut && c.known && c.off == rq.off && c.secret == rq.key.Secret && c.id == rq.key.ID {
		return opPutContinue
	}
	return rq.op
}

// partLen returns how many of n bytes of data go into the next record; a negative number if there
// is no room. It makes no small parts because little is left in a frame, but where frames go in
// trains: those are of full frames, and a shorter one ends its train.
func (p *peer) partLen(op opcode, n int) int {
	least := min(n, wholePart)
	if n > wholePart && p.d.trains {
		least = 1
	}
	room := p.conn.Available(reliable.Requests, op.Size(least)) // 0 if there is none
	return min(n, room-op.Size(0))
}

// partFlags returns the flags of the next part, of n bytes.
func (rq *request) partFlags(n int) (flags byte) {
	first, last := !rq.begun, n == len(rq.data)
	if first && rq.op == opPush {
		flags |= flagFirst
	}
	if last {
		flags |= flagLast
	}
	if first && rq.notify == OnFirst || last && rq.notify == OnLast {
		flags |= flagNotify
	}
	return flags
}

// noteAcked notes that all is acknowledged, if it is: before more is sent, or the connection
// forgets what was.
func (p *peer) noteAcked() {
	if p.conn.AllAcked(reliable.Requests) {
		p.acked = p.issued
	}
}

// encodeRequest writes an operation with a reply. It does not wait for others to share its frame,
// as its caller waits.
func (p *peer) encodeRequest(wr *workRequest) fit {
	p.noteAcked()
	b := p.conn.Reserve(reliable.Requests, wr.op.Size(len(wr.data)))
	if b == nil {
		return noRoom
	}
	p.d.lastID++
	wr.requestID = p.d.lastID
	wr.issued = p.issued
	p.pending[wr.requestID] = wr
	wr.write(b, wr.op, 0, wr.data, wr.requestID)
	p.conn.Uncork(reliable.Requests)
	return whole
}

// write writes the record of a request, or of the part of it with that data.
func (rq *request) write(b []byte, op opcode, flags byte, data []byte, requestID uint32) {
	w := begin(b, op, flags, len(data))
	if op != opPutContinue && op != opFence {
		w.u16(rq.key.ID)
		w.u64(rq.key.Secret)
	}
	switch op {
	case opPut:
		w.u64(rq.off)
	case opPush:
		w.u32(uint32(rq.total))
	case opTryPush, opFence:
		w.u32(requestID)
	case opGet, opFetchAdd, opSwap, opCompareSwap:
		w.u64(rq.off)
		w.u32(requestID)
		if op == opGet {
			w.u32(uint32(len(rq.buf)))
			break
		}
		w.u64(rq.operand)
		if op == opCompareSwap {
			w.u64(rq.expected)
		}
	}
	copy(w.b, data)
}
