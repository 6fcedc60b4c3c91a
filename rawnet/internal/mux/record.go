package mux

import (
	"encoding/binary"
	"errors"
)

// Version of the records' layout.
const Version = 1

// Kind is what a record is for.
type Kind uint8

// The kinds.
const (
	Open   Kind = iota + 1 // asks for a stream to a service
	Accept                 // the stream is open
	Refuse                 // it is not, and why
	Data                   // bytes
	Window                 // the sender of this accepts bytes up to another limit
	Fin                    // no more data comes
	Close                  // no more data comes, and none is read
	Reset                  // the stream has ended, and why
	kinds
)

// String names k.
func (k Kind) String() string {
	return [...]string{"?", "open", "accept", "refuse", "data", "window", "fin", "close", "reset", "?"}[min(k, kinds)]
}

// Reason is why a stream was refused or reset.
type Reason uint8

// The reasons.
const (
	NoListener   Reason = iota + 1 // nobody listens for the service
	BacklogFull                    // as many streams wait for Accept as may
	TooMany                        // the node has as many streams as it may
	WrongVersion                   // the node speaks another version of these records
	ListenerGone                   // the listener was closed before it has accepted the stream
	GivenUp                        // the dialer waits no more
	Violation                      // the peer has sent what it may not
	NoSuchStream                   // the node has no such stream, or not any more
	Aborted                        // the program has ended the stream, and says that it is not whole
	PeerDown                       // the peer is down; not on the wire
	reasons
)

// String names r.
func (r Reason) String() string {
	return [...]string{
		"?", "nobody listens", "backlog full", "too many streams", "another version of the stream protocol",
		"listener closed", "dialer has given up", "protocol violation", "no such stream",
		"the other end has cut it off", "peer down",
	}[min(r, reasons)%reasons]
}

// Record is one that was received, or is to be sent.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 flags: 1 the sender of this record is the dialer of the stream
//	 2 Refuse, Reset: the reason; else 0
//	 3 0
//	 4 the stream's number, which its dialer has given it, 8 bytes
//	12 Open, Accept, Window: the sender of this accepts bytes before this offset, 8 bytes
//	20 Open: the service, 1 to 255 bytes
//	12 Data: 1 byte or more
//
// Integers are big-endian. The first 12 bytes, and Refuse and Reset, are the same in all versions:
// so a node can tell one of another version why it is refused.
type Record struct {
	Kind   Kind
	Dialer bool // the sender is the stream's dialer
	Reason Reason
	Stream uint64
	Limit  uint64
	Body   []byte // Open: the service. Data: the bytes. A view of what was parsed
}

// HeaderLen is the length of a Data record without its data, and maxControl that of the longest
// other record.
const (
	HeaderLen  = 12
	limitLen   = 8
	MaxControl = HeaderLen + limitLen + MaxService
)

const flagDialer = 1

// Errors of Parse.
var (
	ErrMalformed = errors.New("malformed record")
	ErrVersion   = errors.New("record of another version")
)

// Append appends r to b.
func (r *Record) Append(b []byte) []byte {
	flags := byte(0)
	if r.Dialer {
		flags = flagDialer
	}
	b = append(b, Version<<4|byte(r.Kind), flags, byte(r.Reason), 0)
	b = binary.BigEndian.AppendUint64(b, r.Stream)
	switch r.Kind {
	case Open, Accept, Window:
		b = binary.BigEndian.AppendUint64(b, r.Limit)
	}
	return append(b, r.Body...)
}

// Parse reads a record. With ErrVersion the stream is known, and whose it is.
func (r *Record) Parse(b []byte) error {
	if len(b) < HeaderLen {
		return ErrMalformed
	}
	*r = Record{
		Kind: Kind(b[0] & 0xf), Dialer: b[1]&flagDialer != 0, Reason: Reason(b[2]),
		Stream: binary.BigEndian.Uint64(b[4:]),
	}
	if r.Reason >= PeerDown {
		r.Reason = reasons // of a later version
	}
	ends := r.Kind == Refuse || r.Kind == Reset
	if b[0]>>4 != Version && !ends {
		return ErrVersion
	}
	body := b[HeaderLen:]
	switch r.Kind {
	case Open, Accept, Window:
		if len(body) < limitLen {
			return ErrMalformed
		}
		r.Limit = binary.BigEndian.Uint64(body)
		body = body[limitLen:]
	}
	if b[1]&^flagDialer != 0 || b[3] != 0 || ends == (r.Reason == 0) || !r.fits(len(body)) {
		return ErrMalformed
	}
	r.Body = body
	return nil
}

// fits reports whether a record of this kind has so many bytes behind its fields.
func (r *Record) fits(n int) bool {
	switch r.Kind {
	case Open:
		return n >= 1 && n <= MaxService
	case Data:
		return n >= 1
	}
	return n == 0 && r.Kind >= Accept && r.Kind < kinds
}
