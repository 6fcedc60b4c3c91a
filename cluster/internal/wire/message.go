// Package wire is the messages of an exchange: docs/wire-format.md, Exchange.
package wire

import "encoding/binary"

// Kind of a message. The answer to a kind is the kind after it.
type Kind uint8

// The kinds.
const (
	Request Kind = iota + 1 // of Ask
	Answer                  // to it
	Pending                 // there is no answer yet
	Fetch                   // of a node's blob of a round, from an offset on
	Part                    // of it
	Done                    // the sender has completed a round
	kinds
)

var kindNames = [kinds]string{"?", "request", "answer", "pending", "fetch", "part", "done"}

// String names k.
func (k Kind) String() string {
	if !k.Valid() {
		return kindNames[0]
	}
	return kindNames[k]
}

// Valid reports whether there is such a kind. Messages of others are ignored.
func (k Kind) Valid() bool { return k > 0 && k < kinds }

// Message of an exchange. Integers are big-endian.
//
//	 0 kind, 1 byte; 3 bytes of 0
//	 4 number of the request, or round, 4 bytes
//	 8 offset in the answer or blob, 4 bytes
//	12 length of the answer or blob, 4 bytes; NotPosted if there is none yet
//	16 data: the request, or bytes of the answer or blob
type Message struct {
	Kind           Kind
	Number         uint32
	Offset, Length uint32
	Data           []byte
}

// HeaderLen is the length of what is before the data.
const HeaderLen = 16

const (
	offNumber = 4
	offOffset = 8
	offLength = 12
)

// NotPosted is the length of a blob that is not there yet.
const NotPosted = 1<<32 - 1

// Bytes returns the bytes of m.
func (m Message) Bytes() []byte {
	b := make([]byte, offNumber, HeaderLen+len(m.Data))
	b[0] = byte(m.Kind)
	b = binary.BigEndian.AppendUint32(b, m.Number)
	b = binary.BigEndian.AppendUint32(b, m.Offset)
	b = binary.BigEndian.AppendUint32(b, m.Length)
	return append(b, m.Data...)
}

// Parse reads a message, whose data is a view of b; its kind is 0 if b is too short for one.
func Parse(b []byte) (m Message) {
	if len(b) < HeaderLen {
		return m
	}
	return Message{
		Kind: Kind(b[0]), Number: binary.BigEndian.Uint32(b[offNumber:]),
		Offset: binary.BigEndian.Uint32(b[offOffset:]), Length: binary.BigEndian.Uint32(b[offLength:]),
		Data: b[HeaderLen:],
	}
}
