// Package wire is the layout of memfifo's records: what package memfifo and readers of captures
// share. docs/wire-format.md has the fields of each.
package wire

import "encoding/binary"

// Opcode is what a record is for. A record is one operation, or a part of a long one, in a frame.
type Opcode uint8

// The opcodes.
const (
	Put     Opcode = iota + 1 // requests
	Push                      // a record of a FIFO, or a part of one
	TryPush                   // a push that does not wait
	Get
	FetchAdd
	Swap
	CompareSwap
	Fence
	Data // replies
	Value
	Error
	Refused     // of an operation that has no reply
	PutContinue // requests: a put where the last one of its sender ended
	Opcodes     // no opcode: one more than the last
)

// Field is one of those between the head of a record and its data.
type Field struct {
	Name string
	Size int // in bytes
}

var (
	id        = Field{"id", 2}
	secret    = Field{Secret, 8}
	offset    = Field{"offset", 8}
	requestID = Field{"request", 4}
	reason    = Field{Reason, 1}
)

// Secret and Reason are the names of fields that readers do not show as numbers.
const (
	Secret = "secret"
	Reason = "reason"
)

var layouts = [Opcodes]struct {
	name   string
	fields []Field
}{
	Put:         {"put", []Field{id, secret, offset}},
	Push:        {"push", []Field{id, secret, {"length", 4}}}, // of the whole record
	TryPush:     {"try push", []Field{id, secret, requestID}},
	Get:         {"get", []Field{id, secret, offset, requestID, {"length", 4}}},
	FetchAdd:    {"fetch and add", []Field{id, secret, offset, requestID, {"operand", 8}}},
	Swap:        {"swap", []Field{id, secret, offset, requestID, {"operand", 8}}},
	CompareSwap: {"compare and swap", []Field{id, secret, offset, requestID, {"operand", 8}, {"expected", 8}}},
	Fence:       {"fence", []Field{requestID}},
	Data:        {"data", []Field{requestID, {"at", 4}}}, // the offset in the reply
	Value:       {"value", []Field{requestID, {"value", 8}}},
	Error:       {"error", []Field{requestID, reason}},
	Refused:     {"refused", []Field{id, reason}},
	PutContinue: {"put continue", nil},
}

// String names o.
func (o Opcode) String() string {
	if o == 0 || o >= Opcodes {
		return "?"
	}
	return layouts[o].name
}

// HasReply reports whether a request has a reply that its caller waits for.
func (o Opcode) HasReply() bool { return o >= TryPush && o <= Fence }

// Fields returns what is between the head and the data, in order.
func (o Opcode) Fields() []Field { return layouts[o].fields }

// Flags of a record.
const (
	FlagLast   = 1 // of the parts of a put or push
	FlagFirst  = 2
	FlagNotify = 4 // the owner is notified when the part with this flag is in place
)

// HeadLen is the length of a record's beginning: opcode, flags, length of the data. What follows
// has a fixed length for each opcode.
const HeadLen = 4

var fixedLen = func() (sizes [Opcodes]int) {
	for o := range sizes {
		for _, f := range layouts[o].fields {
			sizes[o] += f.Size
		}
	}
	return sizes
}()

// Size returns the length of a record with so many bytes of data.
func (o Opcode) Size(data int) int { return HeadLen + fixedLen[o] + data }

// Split finds the first record of b: its fields are b[HeadLen:data], its data b[data:end]. ok is
// false if b begins with none that is whole.
func Split(b []byte) (op Opcode, data, end int, ok bool) {
	if len(b) < HeadLen {
		return 0, 0, 0, false
	}
	op = Opcode(b[0])
	if op == 0 || op >= Opcodes {
		return 0, 0, 0, false
	}
	data = op.Size(0)
	end = data + int(binary.BigEndian.Uint16(b[2:]))
	return op, data, end, end <= len(b)
}
