package memfifo

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/memfifo/internal/wire"
)

// A record is one operation, or a part of a long one, in a frame. docs/wire-format.md has the
// layouts.
type opcode = wire.Opcode

const (
	opPut         = wire.Put
	opPush        = wire.Push
	opTryPush     = wire.TryPush
	opGet         = wire.Get
	opFetchAdd    = wire.FetchAdd
	opSwap        = wire.Swap
	opCompareSwap = wire.CompareSwap
	opFence       = wire.Fence
	opData        = wire.Data
	opValue       = wire.Value
	opError       = wire.Error
	opRefused     = wire.Refused
	opPutContinue = wire.PutContinue
	opcodes       = wire.Opcodes
)

const (
	flagLast   = wire.FlagLast
	flagFirst  = wire.FlagFirst
	flagNotify = wire.FlagNotify
	headLen    = wire.HeadLen
)

// cursor is where a node's last put to another one ended: a put that goes on there need not say so.
// Requests of one node are taken once, and in order; so both ends know the same.
type cursor struct {
	id     uint16
	secret uint64
	off    uint64
	known  bool
}

// begin writes a record's head and returns what is to be filled in.
func begin(b []byte, o opcode, flags byte, data int) writer {
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
	data  []byte // its capacity ends with it, as a handler may append to it
	all   []byte // the whole of it, and what follows
	next  []byte // what follows
}

// parse takes the first record off b.
func (r *record) parse(b []byte) bool {
	op, data, end, ok := wire.Split(b)
	if !ok {
		return false
	}
	r.op, r.flags = op, b[1]
	r.all, r.next = b, b[end:]
	r.fixed.b, r.data = b[headLen:data], b[data:end:end]
	return true
}

// reader takes fields off, one after the other. Its length was checked.
type reader struct{ b []byte }

func (r *reader) u8() (v uint8)   { v, r.b = r.b[0], r.b[1:]; return v }
func (r *reader) u16() (v uint16) { v, r.b = binary.BigEndian.Uint16(r.b), r.b[2:]; return v }
func (r *reader) u32() (v uint32) { v, r.b = binary.BigEndian.Uint32(r.b), r.b[4:]; return v }
func (r *reader) u64() (v uint64) { v, r.b = binary.BigEndian.Uint64(r.b), r.b[8:]; return v }
