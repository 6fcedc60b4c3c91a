package wire

import "encoding/binary"

// multicastKind is the kind of records about multicasts.
const multicastKind = 12

// What a record about a multicast says.
const (
	multicastData = iota + 1
	multicastAsk
)

// MulticastHeadLen is the length of what goes before the data of a multicast.
const MulticastHeadLen = 16

// Multicast is a message of one process to all others of a communicator, or asks for one that has
// not come. It goes as a multicast frame, or as a record to those who have asked for it.
type Multicast struct {
	Ask         bool
	Context     uint32 // the communicator's
	Number      uint32 // among those of its sender, from 1
	Incarnation uint32 // of the sender in the communicator; 0 in Ask
	Data        []byte
}

// IsMulticast reports whether a record is about a multicast.
func IsMulticast(b []byte) bool { return len(b) > 0 && b[0] == Version<<4|multicastKind }

// AppendMulticast appends a multicast, or what asks for one, to b.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 1 data, 2 ask
//	 2 0, 2 bytes
//	 4 context, 4 bytes
//	 8 number, 4 bytes
//	12 incarnation, 4 bytes
//	16 data
//
// Integers are big-endian.
func AppendMulticast(b []byte, m *Multicast) []byte {
	what := byte(multicastData)
	if m.Ask {
		what = multicastAsk
	}
	n := binary.BigEndian
	b = n.AppendUint32(append(b, Version<<4|multicastKind, what, 0, 0), m.Context)
	b = n.AppendUint32(n.AppendUint32(b, m.Number), m.Incarnation)
	return append(b, m.Data...)
}

// ParseMulticast reads a multicast, or what asks for one. Its data is a view of b.
func ParseMulticast(m *Multicast, b []byte) error {
	switch {
	case len(b) > 0 && b[0]>>4 != Version:
		return ErrVersion
	case len(b) < MulticastHeadLen || !IsMulticast(b):
		return ErrMalformed
	}
	n := binary.BigEndian
	*m = Multicast{
		Ask: b[1] == multicastAsk, Context: n.Uint32(b[4:]), Number: n.Uint32(b[8:]), Incarnation: n.Uint32(b[12:]),
	}
	known := b[1] == multicastData || m.Ask && len(b) == MulticastHeadLen
	if !known || b[2] != 0 || b[3] != 0 || m.Ask != (m.Incarnation == 0) {
		return ErrMalformed
	}
	m.Data = b[MulticastHeadLen:]
	return nil
}
