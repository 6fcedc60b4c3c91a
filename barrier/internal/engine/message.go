package engine

import (
	"encoding/binary"
	"errors"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
)

// Version of the messages' layout.
const Version = 4

// Kind is what a message says.
type Kind uint8

// The kinds.
const (
	Notify        Kind = iota + 1 // the schedule's message with this label
	Nack                          // your message with this label is missing here
	NotYet                        // the answer to Nack where the message was not sent yet
	Fail                          // the barrier cannot succeed
	Bye                           // the sender leaves the group; Done is what it has completed
	ByeAck                        // the answer to Bye
	StatusRequest                 // have you entered?
	StatusReply                   // the answer: Entered
	NoSuchGroup                   // the answer to Nack, StatusRequest and Report where the group does not exist
	Report                        // which members are gone, as the sender knows it
	kinds
)

var kindNames = [kinds]string{
	"?", "notify", "nack", "not yet", "fail", "bye", "bye ack", "status request", "status reply",
	"no such group", "report",
}

// String names k.
func (k Kind) String() string {
	if k >= kinds {
		return kindNames[0]
	}
	return kindNames[k]
}

// scheduled reports whether a message is part of a schedule's run.
func (k Kind) scheduled() bool { return k == Notify || k == Nack || k == NotYet }

// Identity tells groups apart. It is comparable.
type Identity struct {
	Hash  uint64 // of the group's number and members, and of the mask of a part of them
	Epoch uint32 // the sender's count of groups made with them, from 1
}

// Message is one message of a barrier. It carries ranks, not node numbers: the members of a group
// number each other alike.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 number of the barrier
//	 2 label
//	 3 flags: 1 entered, 2 decided, 4 query, 8 heard
//	 4 identity of the group and its members, 8 bytes
//	12 epoch, 4 bytes
//	16 generation, 4 bytes; of a report its version
//	20 the sender's algorithm, 4 bytes: a hash of its name
//	24 the sender's incarnation, 4 bytes; 0 of NoSuchGroup, and of a ByeAck without the group
//	28 Notify of generation 1: how many incarnations (2; 0, or one for each member), by rank
//	   those that the sender knows (4 each; 0: not known)
//	   NotYet: the sender's own generation (4)
//	   Fail: reason (1), 0 (1), how many members (2), the members (2 each)
//	   Bye: the receiver's incarnation (4; 0: not known), how many barriers (2), for each its
//	   number (1) and the generation completed (4); incarnations as in Notify
//	   NoSuchGroup: the lowest epoch of the group that exists there (4; 0: none), the kind of
//	   message that it answers (1)
//	   Report: the receiver's incarnation (4; 0: not known), how many members are gone (2), for
//	   each its rank (2) and the reason (1)
//
// Integers are big-endian.
type Message struct {
	Kind        Kind
	Number      uint8
	Label       uint8
	Entered     bool // StatusReply, NotYet: the sender has entered this generation
	Heard       bool // Nack, Report: the sender has heard the receiver in the group; NoSuchGroup: of what it answers
	Identity    Identity
	Generation  uint32
	Algorithm   uint32
	Incarnation uint32

	Known   []uint32 // Notify of generation 1, Bye: by rank, as Echo
	Echo    uint32   // Bye: the receiver's incarnation as the sender knows it; 0: not known
	Own     uint32   // NotYet: the sender's own generation, where Generation is the nack's
	Lowest  uint32   // NoSuchGroup: the lowest epoch that exists at the sender; 0: none
	Answers Kind     // NoSuchGroup: what it answers
	Failure *Failure // Fail
	Done    []Done   // Bye
	Report  *agreement.Report

	NIC int // the network that the message came by; not on the wire
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
	offEpoch       = 12
	offGeneration  = 16
	offAlgorithm   = 20
	offIncarnation = 24
	headLen        = 28
	wordLen        = 4
	failureLen     = 4
	byeLen         = 6
	doneLen        = 5
	reportLen      = 6
	goneLen        = 3

	flagEntered = 1
	flagDecided = 2
	flagQuery   = 4
	flagHeard   = 8
)

// MaxLen is the most bytes that Append adds.
const MaxLen = headLen + byeLen + Numbers*doneLen + 2

// ErrMalformed is the error of Parse: the bytes are no message of this version.
var ErrMalformed = errors.New("malformed barrier message")

// Append appends m's bytes to b.
func (m *Message) Append(b []byte) []byte {
	flags := byte(0)
	if m.Entered {
		flags |= flagEntered
	}
	if m.Heard {
		flags |= flagHeard
	}
	b = append(b, Version<<4|byte(m.Kind), m.Number, m.Label, flags)
	b = binary.BigEndian.AppendUint64(b, m.Identity.Hash)
	b = binary.BigEndian.AppendUint32(b, m.Identity.Epoch)
	b = binary.BigEndian.AppendUint32(b, m.Generation)
	b = binary.BigEndian.AppendUint32(b, m.Algorithm)
	b = binary.BigEndian.AppendUint32(b, m.Incarnation)
	switch m.Kind {
	case Notify:
		if m.Generation == 1 {
			b = m.appendKnown(b)
		}
	case NotYet:
		b = binary.BigEndian.AppendUint32(b, m.Own)
	case NoSuchGroup:
		b = append(binary.BigEndian.AppendUint32(b, m.Lowest), byte(m.Answers))
	case Report:
		b = m.appendReport(b)
	case Fail:
		b = append(b, byte(m.Failure.Reasons[0]), 0)
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.Failure.Ranks)))
		for _, r := range m.Failure.Ranks {
			b = binary.BigEndian.AppendUint16(b, uint16(r))
		}
	case Bye:
		b = binary.BigEndian.AppendUint32(b, m.Echo)
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.Done)))
		for _, d := range m.Done {
			b = append(b, d.Number)
			b = binary.BigEndian.AppendUint32(b, d.Generation)
		}
		b = m.appendKnown(b)
	}
	return b
}

// appendKnown appends the incarnations.
func (m *Message) appendKnown(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Known)))
	for _, incarnation := range m.Known {
		b = binary.BigEndian.AppendUint32(b, incarnation)
	}
	return b
}

// appendReport appends what follows a report's head. Its version is the message's generation.
func (m *Message) appendReport(b []byte) []byte {
	r, flags := m.Report, &b[len(b)-headLen+offFlags]
	if r.Decided {
		*flags |= flagDecided
	}
	if r.Query {
		*flags |= flagQuery
	}
	gone := r.Gone[:min(len(r.Gone), agreement.MaxGone)]
	b = binary.BigEndian.AppendUint32(b, r.Echo)
	b = binary.BigEndian.AppendUint16(b, uint16(len(gone)))
	for _, g := range gone {
		b = append(binary.BigEndian.AppendUint16(b, uint16(g.Rank)), byte(g.Reason))
	}
	return b
}

// maxGone returns how many members a report of at most so many bytes names: one at least.
func maxGone(most int) int { return max(1, (most-headLen-reportLen)/goneLen) }

// IdentityOf returns the bytes of a message's identity.
func IdentityOf(b []byte) []byte { return b[offIdentity:offGeneration] }

// Parse reads a message into m, which keeps nothing of b. It allocates for failures, goodbyes,
// reports and first generations only.
func Parse(b []byte, m *Message) error {
	if len(b) < headLen || b[0]>>4 != Version {
		return ErrMalformed
	}
	*m = Message{
		Kind:        Kind(b[0] & 0xf),
		Number:      b[offNumber],
		Label:       b[offLabel],
		Entered:     b[offFlags]&flagEntered != 0,
		Heard:       b[offFlags]&flagHeard != 0,
		Identity:    Identity{binary.BigEndian.Uint64(b[offIdentity:]), binary.BigEndian.Uint32(b[offEpoch:])},
		Generation:  binary.BigEndian.Uint32(b[offGeneration:]),
		Algorithm:   binary.BigEndian.Uint32(b[offAlgorithm:]),
		Incarnation: binary.BigEndian.Uint32(b[offIncarnation:]),
	}
	rest := b[headLen:]
	switch {
	case m.Kind == 0 || m.Kind >= kinds:
		return ErrMalformed
	case m.Incarnation == 0 && m.Kind != NoSuchGroup && m.Kind != ByeAck:
		return ErrMalformed
	case m.Kind == Notify && m.Generation == 1:
		return m.parseKnown(rest)
	case m.Kind == NotYet:
		return parseWord(rest, &m.Own)
	case m.Kind == NoSuchGroup:
		return m.parseNoSuchGroup(rest)
	case m.Kind == Report:
		return m.parseReport(b)
	case m.Kind == Fail:
		return m.parseFailure(rest)
	case m.Kind == Bye:
		return m.parseDone(rest)
	}
	return nil
}

func parseWord(b []byte, w *uint32) error {
	if len(b) < wordLen {
		return ErrMalformed
	}
	*w = binary.BigEndian.Uint32(b)
	return nil
}

func (m *Message) parseKnown(b []byte) error {
	if len(b) < 2 {
		return ErrMalformed
	}
	count := int(binary.BigEndian.Uint16(b))
	b = b[2:]
	if count > maxKnown || len(b) < count*wordLen {
		return ErrMalformed
	}
	for ; count > 0; count-- {
		m.Known = append(m.Known, binary.BigEndian.Uint32(b))
		b = b[wordLen:]
	}
	return nil
}

func (m *Message) parseNoSuchGroup(b []byte) error {
	if len(b) < wordLen+1 {
		return ErrMalformed
	}
	m.Lowest, m.Answers = binary.BigEndian.Uint32(b), Kind(b[wordLen])
	return nil
}

func (m *Message) parseFailure(b []byte) error {
	if len(b) < failureLen {
		return ErrMalformed
	}
	f, reason := new(Failure), Reason(b[0])
	count := int(binary.BigEndian.Uint16(b[2:]))
	b = b[failureLen:]
	if reason == 0 || reason >= reasons || count == 0 || count > maxNamed || len(b) < 2*count {
		return ErrMalformed
	}
	for i := range count {
		f.Ranks, f.Reasons = append(f.Ranks, int(binary.BigEndian.Uint16(b[2*i:]))), append(f.Reasons, reason)
	}
	m.Failure = f
	return nil
}

// parseReport reads a report, whose members come in ascending order. Nobody decides that nobody is
// gone.
func (m *Message) parseReport(b []byte) error {
	flags, rest := b[offFlags], b[headLen:]
	if len(rest) < reportLen {
		return ErrMalformed
	}
	r := &agreement.Report{
		Version: m.Generation, Echo: binary.BigEndian.Uint32(rest),
		Decided: flags&flagDecided != 0, Query: flags&flagQuery != 0,
	}
	count := int(binary.BigEndian.Uint16(rest[wordLen:]))
	rest = rest[reportLen:]
	if count > agreement.MaxGone || len(rest) < count*goneLen || count == 0 && r.Decided {
		return ErrMalformed
	}
	last := -1
	for ; count > 0; count-- {
		g := agreement.Gone{Rank: int(binary.BigEndian.Uint16(rest)), Reason: Reason(rest[2])}
		if g.Rank <= last || !g.Reason.Valid() {
			return ErrMalformed
		}
		last = g.Rank
		r.Gone = append(r.Gone, g)
		rest = rest[goneLen:]
	}
	m.Report = r
	return nil
}

func (m *Message) parseDone(b []byte) error {
	if len(b) < byeLen {
		return ErrMalformed
	}
	m.Echo = binary.BigEndian.Uint32(b)
	count := int(binary.BigEndian.Uint16(b[wordLen:]))
	b = b[byeLen:]
	if count > Numbers || len(b) < count*doneLen {
		return ErrMalformed
	}
	for ; count > 0; count-- {
		m.Done = append(m.Done, Done{b[0], binary.BigEndian.Uint32(b[1:])})
		b = b[doneLen:]
	}
	if err := m.parseKnown(b); err != nil || !m.fits(MaxLen) {
		return ErrMalformed
	}
	return nil
}

// fits reports whether a bye is at most so long.
func (m *Message) fits(most int) bool {
	return headLen+byeLen+len(m.Done)*doneLen+2+len(m.Known)*wordLen <= most
}
