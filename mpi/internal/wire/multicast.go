package wire

import "encoding/binary"

// multicastKind is the kind of records about multicasts.
const multicastKind = 12

// MulticastKind says what a record about a multicast is.
type MulticastKind uint8

// The kinds of records about multicasts.
const (
	Data      MulticastKind = iota + 1 // a message to all others: as a frame, or as a record
	Ask                                // Number has not come, all up to Ended have
	Have                               // all up to Number have, Missed since the last Have not as frames
	Withdrawn                          // Number, which was asked for, was given up
	Left                               // the sender takes no more, and answers nobody
	Waiting                            // the sender's next one waits until all up to Number have come
)

// Collective says of which collective operation a multicast is.
type Collective uint8

// The collective operations that have multicasts.
const (
	Bcast Collective = iota + 1
	Allreduce
	Allgather
)

var collectives = [...]string{Bcast: "bcast", Allreduce: "allreduce", Allgather: "allgather"}

// CollectiveOf returns the operation with a name.
func CollectiveOf(name string) Collective {
	switch name {
	case collectives[Bcast]:
		return Bcast
	case collectives[Allreduce]:
		return Allreduce
	}
	return Allgather
}

// String returns the operation's name.
func (c Collective) String() string { return collectives[c] }

// Operation is a collective operation of a communicator.
type Operation struct {
	Collective Collective
	Number     uint32 // among all collective operations of the communicator
}

// Lengths of what goes before the data of a multicast, and before what is told.
const (
	MulticastHeadLen = 16
	dataHeadLen      = MulticastHeadLen + 4
)

// Multicast is a message of one process to all others of a communicator, or about such messages.
type Multicast struct {
	Kind        MulticastKind
	Missed      uint16    // of Have
	Context     uint32    // the communicator's
	Number      uint32    // among those of one process, from 1; 0 in Left
	Incarnation uint32    // of the sender in the communicator; of Data alone
	Ended       uint32    // of Ask: all up to this one have come, or were given up
	Operation   Operation // of Data: which gives it
	Told        []byte    // of Data: what AppendTold has appended for each process, by rank; or nothing
	Data        []byte
}

// toldLen is the length of what Data tells each process.
const toldLen = 4

// AppendTold appends what Data tells the next process: that all of its multicasts up to a number
// have come, or were given up.
func AppendTold(b []byte, number uint32) []byte { return binary.BigEndian.AppendUint32(b, number) }

// ToldTo returns what Data tells the process with a rank, if it tells all of so many.
func (m *Multicast) ToldTo(rank, processes int) (number uint32, ok bool) {
	if len(m.Told) != toldLen*processes {
		return 0, false
	}
	return binary.BigEndian.Uint32(m.Told[toldLen*rank:]), true
}

// IsMulticast reports whether a record is about a multicast.
func IsMulticast(b []byte) bool { return len(b) > 0 && b[0] == Version<<4|multicastKind }

// AppendMulticast appends a record about a multicast to b.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 1 Data, 2 Ask, 3 Have, 4 Withdrawn, 5 Left, 6 Waiting
//	 2 missed, 2 bytes                           Have
//	 2 1 Bcast, 2 Allreduce, 3 Allgather         Data
//	 3 how many processes are told               Data
//	 2 0, 2 bytes                                the others
//	 4 context, 4 bytes
//	 8 number, 4 bytes                           0 in Left
//	12 incarnation, 4 bytes                      Data
//	12 all up to which have come, 4 bytes        Ask; else 0
//	16 number of the operation, 4 bytes          Data
//	20 what each is told, 4 bytes                Data
//	   data                                      Data
//
// Integers are big-endian.
func AppendMulticast(b []byte, m *Multicast) []byte {
	n := binary.BigEndian
	count, last := uint16(0), uint32(0)
	switch m.Kind {
	case Data:
		count, last = uint16(m.Operation.Collective)<<8|uint16(len(m.Told)/toldLen), m.Incarnation
	case Ask:
		last = m.Ended
	case Have:
		count = m.Missed
	}
	b = n.AppendUint16(append(b, Version<<4|multicastKind, byte(m.Kind)), count)
	b = n.AppendUint32(n.AppendUint32(n.AppendUint32(b, m.Context), m.Number), last)
	if m.Kind == Data {
		b = n.AppendUint32(b, m.Operation.Number)
	}
	return append(append(b, m.Told...), m.Data...)
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
	*m = Multicast{Kind: MulticastKind(b[1]), Context: n.Uint32(b[4:]), Number: n.Uint32(b[8:])}
	count, last, rest := n.Uint16(b[2:]), n.Uint32(b[12:]), b[MulticastHeadLen:]
	switch m.Kind {
	case Data:
		return m.parseData(b)
	case Ask:
		m.Ended, last = last, 0
	case Have:
		m.Missed, count = count, 0
	case Withdrawn, Waiting:
	case Left:
		last |= m.Number
	default:
		return ErrMalformed
	}
	if count != 0 || last != 0 || len(rest) > 0 {
		return ErrMalformed
	}
	return nil
}

// parseData reads what Data alone has.
func (m *Multicast) parseData(b []byte) error {
	n, end := binary.BigEndian, dataHeadLen+toldLen*int(b[3])
	m.Operation.Collective, m.Incarnation = Collective(b[2]), n.Uint32(b[12:])
	if b[2] == 0 || int(b[2]) >= len(collectives) || end > len(b) || m.Incarnation == 0 {
		return ErrMalformed
	}
	m.Operation.Number = n.Uint32(b[MulticastHeadLen:])
	m.Told, m.Data = b[dataHeadLen:end:end], b[end:]
	return nil
}
