package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version of the messages' layout.
const Version = 1

// Kind is what a message says.
type Kind uint8

// The kinds.
const (
	Tell    Kind = iota + 1 // I have done what this message of the schedule stands for
	Ask                     // I lack your message with this label
	Later                   // the answer, if it was not told yet
	Fail                    // this barrier has failed
	Bye                     // I leave the group; Done is what I have completed
	Bid                     // the answer to Bye
	Roll                    // have you entered?
	Present                 // the answer: Entered says so
	Absent                  // I am here, but know no such group (yet, or any longer)
	kinds
)

var kindNames = [kinds]string{"?", "tell", "missing?", "later", "failed", "bye", "bye, too", "roll call", "present", "no such group"}

// String names k.
func (k Kind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// runs reports whether a message is part of a schedule's run.
func (k Kind) runs() bool { return k == Tell || k == Ask || k == Later }

// Message is one message of a barrier. Ranks, not node numbers, are in it: members of a group number each other alike.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 number of the barrier
//	 2 label
//	 3 flags: 1 entered
//	 4 identity of the group and its members, 8 bytes
//	12 generation, 4 bytes
//	16 the sender's algorithm, 4 bytes: a hash of its name
//	20 the sender's incarnation, 4 bytes
//	24 Later, Absent: the sender's own generation (4), and where it waits elsewhere: number, 3 bytes of 0, identity (8), generation (4)
//	   Fail: reason (1), 0 (1), how many members (2), the first 16 of them (2 each)
//	   Bye: how many barriers (2), for each its number (1) and the generation that was completed (4)
//
// Integers are big-endian.
type Message struct {
	Kind        Kind
	Number      uint8
	Label       uint8
	Entered     bool // Present, Later: the sender has entered this generation
	Identity    uint64
	Generation  uint32
	Algorithm   uint32
	Incarnation uint32

	Own       uint32    // Later: the sender's own generation, where Generation is the one asked for
	Elsewhere Elsewhere // Later, Absent
	Failure   *Failure  // Fail
	Done      []Done    // Bye

	NIC int // that it came by; not on the wire
}

// Elsewhere is another barrier, in which who answers Later waits for who asked. The zero one is none.
type Elsewhere struct {
	Number     uint8
	Identity   uint64
	Generation uint32 // from 1
}

// Done is the last generation of a barrier that a member has completed.
type Done struct {
	Number     uint8
	Generation uint32
}

const (
	offNumber      = 1
	offLabel       = 2
	offFlags       = 3
	offIdentity    = 4
	offGeneration  = 12
	offAlgorithm   = 16
	offIncarnation = 20
	headLen        = 24
	laterLen       = 20
	failureLen     = 4
	doneLen        = 5

	flagEntered = 1
)

// MaxLen is the most bytes that Append adds.
const MaxLen = headLen + 2 + Numbers*doneLen

// ErrMalformed: not a message of this version.
var ErrMalformed = errors.New("malformed barrier message")

// Append appends m's bytes to b.
func (m *Message) Append(b []byte) []byte {
	flags := byte(0)
	if m.Entered {
		flags |= flagEntered
	}
	b = append(b, Version<<4|byte(m.Kind), m.Number, m.Label, flags)
	b = binary.BigEndian.AppendUint64(b, m.Identity)
	b = binary.BigEndian.AppendUint32(b, m.Generation)
	b = binary.BigEndian.AppendUint32(b, m.Algorithm)
	b = binary.BigEndian.AppendUint32(b, m.Incarnation)
	switch m.Kind {
	case Later, Absent:
		b = binary.BigEndian.AppendUint32(b, m.Own)
		b = append(b, m.Elsewhere.Number, 0, 0, 0)
		b = binary.BigEndian.AppendUint64(b, m.Elsewhere.Identity)
		b = binary.BigEndian.AppendUint32(b, m.Elsewhere.Generation)
	case Fail:
		b = append(b, byte(m.Failure.Reason), 0)
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.Failure.Ranks)))
		for _, r := range m.Failure.Ranks[:min(len(m.Failure.Ranks), maxNamed)] {
			b = binary.BigEndian.AppendUint16(b, uint16(r))
		}
	case Bye:
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.Done)))
		for _, d := range m.Done {
			b = append(b, d.Number)
			b = binary.BigEndian.AppendUint32(b, d.Generation)
		}
	}
	return b
}

// Parse reads a message into m, which keeps nothing of b. It allocates only for failures and goodbyes.
func Parse(b []byte, m *Message) error {
	if len(b) < headLen || b[0]>>4 != Version {
		return ErrMalformed
	}
	*m = Message{
		Kind:        Kind(b[0] & 0xf),
		Number:      b[offNumber],
		Label:       b[offLabel],
		Entered:     b[offFlags]&flagEntered != 0,
		Identity:    binary.BigEndian.Uint64(b[offIdentity:]),
		Generation:  binary.BigEndian.Uint32(b[offGeneration:]),
		Algorithm:   binary.BigEndian.Uint32(b[offAlgorithm:]),
		Incarnation: binary.BigEndian.Uint32(b[offIncarnation:]),
	}
	rest := b[headLen:]
	switch {
	case m.Kind == 0 || m.Kind >= kinds:
		return ErrMalformed
	case m.Kind == Later, m.Kind == Absent:
		return m.parseLater(rest)
	case m.Kind == Fail:
		return m.parseFailure(rest)
	case m.Kind == Bye:
		return m.parseDone(rest)
	}
	return nil
}

func (m *Message) parseLater(b []byte) error {
	if len(b) < laterLen {
		return ErrMalformed
	}
	m.Own = binary.BigEndian.Uint32(b)
	m.Elsewhere = Elsewhere{b[4], binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint32(b[16:])}
	return nil
}

func (m *Message) parseFailure(b []byte) error {
	if len(b) < failureLen {
		return ErrMalformed
	}
	f := &Failure{Reason: Reason(b[0])}
	count := int(binary.BigEndian.Uint16(b[2:]))
	named := min(count, maxNamed)
	b = b[failureLen:]
	if f.Reason == 0 || f.Reason >= reasons || count == 0 || len(b) < 2*named {
		return ErrMalformed
	}
	for i := range named {
		f.Ranks = append(f.Ranks, int(binary.BigEndian.Uint16(b[2*i:])))
	}
	f.Others = count - named
	m.Failure = f
	return nil
}

func (m *Message) parseDone(b []byte) error {
	if len(b) < 2 {
		return ErrMalformed
	}
	count := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if count > Numbers || len(b) < count*doneLen {
		return ErrMalformed
	}
	for ; count > 0; count-- {
		m.Done = append(m.Done, Done{b[0], binary.BigEndian.Uint32(b[1:])})
		b = b[doneLen:]
	}
	return nil
}

// String is for transcripts: what it says, of which barrier and generation.
func (m *Message) String() string {
	s := m.Kind.String()
	switch m.Kind {
	case Tell, Ask:
		s += fmt.Sprintf(" %d", m.Label)
	case Fail:
		s += fmt.Sprintf(" (%v)", m.Failure)
	}
	if m.Number != 0 {
		s += fmt.Sprintf(" number=%d", m.Number)
	}
	if m.Kind != Bye && m.Kind != Bid {
		s += fmt.Sprintf(" gen=%d", m.Generation)
	}
	return s
}
