package wire

import (
	"encoding/binary"

	"github.com/rawlane/rawlane/mpi/internal/consensus"
)

// commKind is the kind of records about a communicator.
const commKind = 11

// What a record says that is of no agreement: consensus has the numbers before them.
const (
	revoke = byte(consensus.Decide) + 1 + iota
	left
)

// Comm is a record about a communicator.
type Comm struct {
	Context   uint32            // the communicator's
	Revoke    bool              // it is revoked; or
	Left      bool              // the sender has left a collective operation; else
	Operation uint32            // its number, which may be 0
	Down      uint16            // why it has left: 1 + the rank in the world that is down; or 0
	Message   consensus.Message // of an agreement of its processes
}

// commLen is the length of a record about a communicator without what its message has.
const commLen = 12

// IsComm reports whether a record is about a communicator.
func IsComm(b []byte) bool { return len(b) > 0 && b[0] == Version<<4|commKind }

// AppendComm appends a record about a communicator to b.
//
//	0 version (4 bits), kind (4 bits)
//	1 1 State, 2 Propose, 3 Accept, 4 Decide, 5 Revoke, 6 Left
//	2 0, 2 bytes; in Left 1 + the rank in the world that is down, or 0
//	4 context, 4 bytes
//	8 number of the agreement, 4 bytes          0 in Revoke; of the operation in Left
//	  flags 8, new context 4, round 4           State
//	  acknowledged, down: two sets              State
//	  flags 8, new context 4                    Propose, Decide, State with a round
//	  out, of these not acknowledged: two sets  the same
//
// A set is its length, 2 bytes, and as many bytes. Integers are big-endian.
func AppendComm(b []byte, r *Comm) []byte {
	n, m := binary.BigEndian, &r.Message
	what, number, down := byte(m.Kind), m.Number, uint16(0)
	switch {
	case r.Revoke:
		what = revoke
	case r.Left:
		what, number, down = left, r.Operation, r.Down
	}
	b = append(b, Version<<4|commKind, what)
	b = n.AppendUint16(b, down)
	b = n.AppendUint32(b, r.Context)
	b = n.AppendUint32(b, number)
	if m.Kind == consensus.State {
		c := &m.Contribution
		b = n.AppendUint64(b, c.Flags)
		b = n.AppendUint32(b, c.Context)
		b = n.AppendUint32(b, m.Round)
		b = appendSet(appendSet(b, c.Acknowledged), c.Down)
	}
	if hasValue(m) {
		v := &m.Value
		b = n.AppendUint64(b, v.Flags)
		b = n.AppendUint32(b, v.Context)
		b = appendSet(appendSet(b, v.Failed), v.Unacknowledged)
	}
	return b
}

func hasValue(m *consensus.Message) bool {
	return m.Kind == consensus.Propose || m.Kind == consensus.Decide || m.Kind == consensus.State && m.Round > 0
}

func appendSet(b []byte, s consensus.Set) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// ParseComm reads a record for which IsComm holds. Its sets are its own.
func ParseComm(r *Comm, b []byte) error {
	if len(b) < commLen || b[1] == 0 || b[1] > left {
		return ErrMalformed
	}
	n := binary.BigEndian
	*r = Comm{Context: n.Uint32(b[4:]), Revoke: b[1] == revoke, Left: b[1] == left}
	m, number, down := &r.Message, n.Uint32(b[8:]), n.Uint16(b[2:])
	switch {
	case r.Left:
		r.Operation, r.Down = number, down
	case down != 0 || r.Revoke != (number == 0):
		return ErrMalformed
	case !r.Revoke:
		m.Kind, m.Number = consensus.Kind(b[1]), number
	}
	rest := reader{b: b[commLen:]}
	if m.Kind == consensus.State {
		m.Contribution.Flags, m.Contribution.Context, m.Round = rest.uint64(), rest.uint32(), rest.uint32()
		m.Contribution.Acknowledged, m.Contribution.Down = rest.set(), rest.set()
	}
	if hasValue(m) {
		m.Value.Flags, m.Value.Context = rest.uint64(), rest.uint32()
		m.Value.Failed, m.Value.Unacknowledged = rest.set(), rest.set()
	}
	if rest.short || len(rest.b) > 0 {
		return ErrMalformed
	}
	return nil
}

// reader takes fields off bytes.
type reader struct {
	b     []byte
	short bool // there were too few
}

func (r *reader) take(n int) []byte {
	if r.short = r.short || n > len(r.b); r.short {
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) uint16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

// set takes a copy of a set, whose last byte is not 0.
func (r *reader) set() consensus.Set {
	n := int(r.uint16())
	if n == 0 || r.short || n > len(r.b) {
		r.short = r.short || n > len(r.b)
		return nil
	}
	s := append(consensus.Set(nil), r.take(n)...)
	r.short = r.short || s[n-1] == 0
	return s
}
