package memfifo

import "encoding/binary"

// A record is one operation, or a part of a long one, in a frame. docs/wire-format.md has the
// layouts.
type opcode uint8

const (
	opPut         opcode = iota + 1 // requests: id, secret, offset, data
	opPush                          // id, secret, length of the whole record, data
	opTryPush                       // id, secret, request ID, data: a push that does not wait
	opGet                           // id, secret, offset, request ID, length
	opFetchAdd                      // id, secret, offset, request ID, operand
	opSwap                          // likewise
	opCompareSwap                   // id, secret, offset, request ID, operand, expected
	opFence                         // request ID
	opData                          // replies: request ID, offset in the reply, data
	opValue                         // request ID, value
	opError                         // request ID, reason
	opRefused                       // id, reason: of an operation that has no reply
	opPutContinue                   // requests: data of a put where the last one of its sender ended
	opcodes
)

const (
	flagLast   = 1 // of the parts of a put or push
	flagFirst  = 2
	flagNotify = 4 // the owner is notified when the part with this flag is in place
)

// headLen is the length of a record's beginning: opcode, flags, length of the data. What follows
// has a fixed length for each opcode.
const headLen = 4

var fixedLen = [opcodes]int{
	opPut: 2 + 8 + 8, opPush: 2 + 8 + 4, opTryPush: 2 + 8 + 4, opGet: 2 + 8 + 8 + 4 + 4,
	opFetchAdd: 2 + 8 + 8 + 4 + 8, opSwap: 2 + 8 + 8 + 4 + 8, opCompareSwap: 2 + 8 + 8 + 4 + 8 + 8, opFence: 4,
	opData: 4 + 4, opValue: 4 + 8, opError: 4 + 1, opRefused: 2 + 1,
}

// hasReply reports whether a request has a reply that its caller waits for.
func (o opcode) hasReply() bool { return o >= opTryPush && o <= opFence }

// cursor is where a node's last put to another one ended: a put that goes on there need not say so.
// Requests of one node are taken once, and in order; so both ends know the same.
type cursor struct {
	id     uint16
	secret uint64
	off    uint64
	known  bool
}

// size returns the length of a record with so many bytes of data.
func (o opcode) size(data int) int { return headLen + fixedLen[o] + data }

// begin writes a record's head and returns what is to be filled in.
func (o opcode) begin(b []byte, flags byte, data int) writer {
	b[0], b[1] = byte(o), flags
	binary.BigEndian.PutUint16(b[2:], uint16(data))
	return writer{b[headLen:]}
}

// writer fills in fields, one after the other.
type writer struct{ b []byte }

func (w *writer) u8(v uint8)   { w.b[0] = v; w.b = w.b[1:] }
func (w *writer) u16(v uint16) { binary.BigEndian.PutUint16(w.b, v); w.b = w.b[2:] }
func (w *writer) u32(v uint32) { binary.BigEndian.PutUint32(w.b, v); w.b = w.b[4:] }
func (w *writer) u64(v uint64) { binary.BigEndian.PutUint64(w.b, v); w.b = w.b[8:] }

// record is one that was received: a view of the frame.
type record struct {
	op    opcode
	flags byte
	fixed reader
	data  []byte
	all   []byte // the whole of it, and what follows
	next  []byte // what follows
}

// parse takes the first record off b.
func (r *record) parse(b []byte) bool {
	if len(b) < headLen {
		return false
	}
	r.op, r.flags = opcode(b[0]), b[1]
	if r.op == 0 || r.op >= opcodes {
		return false
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	end := r.op.size(n)
	if len(b) < end {
		return false
	}
	r.all, r.next = b, b[end:]
	r.fixed.b, r.data = b[headLen:end-n], b[end-n:end]
	return true
}

// reader takes fields off, one after the other. Its length was checked.
type reader struct{ b []byte }

func (r *reader) u8() (v uint8)   { v, r.b = r.b[0], r.b[1:]; return v }
func (r *reader) u16() (v uint16) { v, r.b = binary.BigEndian.Uint16(r.b), r.b[2:]; return v }
func (r *reader) u32() (v uint32) { v, r.b = binary.BigEndian.Uint32(r.b), r.b[4:]; return v }
func (r *reader) u64() (v uint64) { v, r.b = binary.BigEndian.Uint64(r.b), r.b[8:]; return v }
