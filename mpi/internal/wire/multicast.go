package wire

import "encoding/binary"

// multicastKind is the kind of records about multicasts.
const multicastKind = 12

// MulticastKind says what a record about a multicast is.
type MulticastKind uint8

// The kinds of records about multicasts.
const (
	Data      MulticastKind = iota + 1 // a message to all others: as a frame, or as a record
	Ask                                // Number has not come
	Have                               // all up to Number have, Missed since the last Have not as frames
	Withdrawn                          // Number, which was asked for, was given up
	Left                               // the sender takes no more, and answers nobody
	multicastKinds
)

// MulticastHeadLen is the length of what goes before the data of a multicast.
const MulticastHeadLen = 16

// Multicast is a message of one process to all others of a communicator, or about such messages.
type Multicast struct {
	Kind        MulticastKind
	Missed      uint16 // of Have
	Context     uint32 // the communicator's
	Number      uint32 // among those of one process, from 1; 0 in Left
	Incarnation uint32 // of the sender in the communicator; of Data alone
	Data        []byte
}

// IsMulticast reports whether a record is about a multicast.
func IsMulticast(b []byte) bool { return len(b) > 0 && b[0] == Version<<4|multicastKind }

// AppendMulticast appends a record about a multicast to b.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 1 Data, 2 Ask, 3 Have, 4 Withdrawn, 5 Left
//	 2 missed, 2 bytes                           Have; else 0
//	 4 context, 4 bytes
//	 8 number, 4 bytes                           0 in Left
//	12 incarnation, 4 bytes                      Data; else 0
//	16 data                                      Data
//
// Integers are big-endian.
func AppendMulticast(b []byte, m *Multicast) []byte {
	n := binary.BigEndian
	b = n.AppendUint16(append(b, Version<<4|multicastKind, byte(m.Kind)), m.Missed)
	b = n.AppendUint32(n.AppendUint32(b, m.Context), m.Number)
	return append(n.AppendUint32(b, m.Incarnation), m.Data...)
}

// ParseMulticast reads a record about a multicast. Its data is a view of b.
func ParseMulticast(m *Multicast, b []byte) error {
	switch {
	case len(b) > 0 && b[0]>>4 != Version:
		return ErrVersion
	case len(b) < MulticastHeadLen || !IsMulticast(b):
		return ErrMalformed
	}
	n := binary.BigEndian
	*m = Multicast{
		Kind: MulticastKind(b[1]), Missed: n.Uint16(b[2:]),
		Context: n.Uint32(b[4:]), Number: n.Uint32(b[8:]), Incarnation: n.Uint32(b[12:]),
	}
	if m.Kind == Data {
		m.Data = b[MulticastHeadLen:]
	}
	switch {
	case m.Kind == 0, m.Kind >= multicastKinds, m.Kind == Left && m.Number != 0,
		m.Kind != Have && m.Missed != 0,
		(m.Kind == Data) != (m.Incarnation != 0), m.Kind != Data && len(b) > MulticastHeadLen:
		return ErrMalformed
	}
	return nil
}
