// Package wire is the messages of an exchange: docs/wire-format.md, Exchange.
package wire

import "encoding/binary"

// Version of the messages' layout. Those before it begin with a kind, 1 to 6, in its place.
const Version = 7

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
	Who                     // is there: of a node that another life of it has written
	Here                    // is the sender
	Former                  // life of the addressee: the one with which the sender has completed a round
	kinds
)

var kindNames = [kinds]string{"?", "request", "answer", "pending", "fetch", "part", "done", "who", "here", "former"}

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
//	 0 version, 1 byte; kind, 1 byte; 2 bytes of 0
//	 4 incarnation of the sender, 4 bytes
//	 8 incarnation of the addressee, 4 bytes; 0 if the sender does not know it, or tells all
//	12 number of the request, of the question who is there, or round, 4 bytes
//	16 offset in the answer or blob, 4 bytes
//	20 length of the answer or blob, 4 bytes; NotPosted if there is none yet
//	24 data: the request, or bytes of the answer or blob
type Message struct {
	Kind           Kind
	From, To       uint32 // incarnations
	Number         uint32
	Offset, Length uint32
	Data           []byte
}

// HeaderLen is the length of what is before the data.
const HeaderLen = 24

const (
	offVersion = 0
	offKind    = 1
	offFrom    = 4
	offTo      = 8
	offNumber  = 12
	offOffset  = 16
	offLength  = 20
)

// NotPosted is the length of a blob that is not there yet.
const NotPosted = 1<<32 - 1

// Bytes returns the bytes of m.
func (m Message) Bytes() []byte {
	b := make([]byte, offFrom, HeaderLen+len(m.Data))
	b[offVersion], b[offKind] = Version, byte(m.Kind)
	b = binary.BigEndian.AppendUint32(b, m.From)
	b = binary.BigEndian.AppendUint32(b, m.To)
	b = binary.BigEndian.AppendUint32(b, m.Number)
	b = binary.BigEndian.AppendUint32(b, m.Offset)
	b = binary.BigEndian.AppendUint32(b, m.Length)
	return append(b, m.Data...)
}

// Parse reads a message, whose data is a view of b; its kind is 0 if b is too short for one, or of
// another version.
func Parse(b []byte) (m Message) {
	if len(b) < HeaderLen || b[offVersion] != Version {
		return m
	}
	return Message{
		Kind: Kind(b[offKind]),
		From: binary.BigEndian.Uint32(b[offFrom:]), To: binary.BigEndian.Uint32(b[offTo:]),
		Number: binary.BigEndian.Uint32(b[offNumber:]),
		Offset: binary.BigEndian.Uint32(b[offOffset:]), Length: binary.BigEndian.Uint32(b[offLength:]),
		Data: b[HeaderLen:],
	}
}
