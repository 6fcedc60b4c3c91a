// Package wire is the layout of rpc's records: what package rpc and readers of captures share.
package wire

import (
	"encoding/binary"
	"errors"
	"time"
)

// Version of the records' layout.
const Version = 1

// Kind is what a record is for.
type Kind uint8

// The kinds.
const (
	Request Kind = iota + 1
	Response
	Cancellation
	kinds
)

// String names k.
func (k Kind) String() string {
	return [...]string{"?", "request", "response", "cancellation", "?"}[min(k, kinds)]
}

// Status of a response.
type Status uint8

// The statuses.
const (
	OK         Status = iota
	Failed            // the handler has returned an error: the data is its text
	NoService         // nobody serves it
	Overloaded        // as many requests wait as may
	Expired           // the deadline passed, or the call was cancelled, before the handler returned
	WrongVersion
	Closing // the server's domain is being closed
	statuses
)

// String names s.
func (s Status) String() string {
	return [...]string{
		"done", "failed", "nobody serves it", "too many requests wait", "the call is over", "another version",
		"closing", "?",
	}[min(s, statuses)]
}

// Record is a request, a response or a cancellation.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 response: the status; else 0
//	 2 request: length of the service's name, 1 to 255; else 0
//	 3 0
//	 4 number of the call, 8 bytes
//	12 request: time left until the deadline, in microseconds, 8 bytes; 0 is none
//	20 request: the service's name, then the data
//	12 response: the data
//
// Integers are big-endian. The first 12 bytes are the same in all versions, and so is a response
// with status 5: another version.
type Record struct {
	Kind    Kind
	Status  Status
	Call    uint64
	Left    time.Duration // 0: no deadline
	Service []byte        // a view of what was parsed, as data
	Data    []byte
}

// HeadLen is the length of a response without its data, and of a cancellation; RequestLen that of a
// request without its service and data.
const (
	HeadLen    = 12
	RequestLen = 20
)

// Errors of Parse.
var (
	ErrMalformed = errors.New("malformed record")
	ErrVersion   = errors.New("record of another version")
)

// AppendRequest appends a request to b.
func AppendRequest(b []byte, call uint64, service string, left time.Duration, data []byte) []byte {
	b = append(b, Version<<4|byte(Request), 0, byte(len(service)), 0)
	b = binary.BigEndian.AppendUint64(b, call)
	b = binary.BigEndian.AppendUint64(b, uint64(left.Microseconds()))
	return append(append(b, service...), data...)
}

// AppendHead appends a response without its data, or a cancellation.
func AppendHead(b []byte, k Kind, s Status, call uint64) []byte {
	b = append(b, Version<<4|byte(k), byte(s), 0, 0)
	return binary.BigEndian.AppendUint64(b, call)
}

// CallOf returns the number of the call that a record is of, which has HeadLen bytes at least.
func CallOf(rec []byte) uint64 { return binary.BigEndian.Uint64(rec[4:]) }

// Parse reads a record. With ErrVersion the call is known, and the kind is that of this version.
func (r *Record) Parse(b []byte) error {
	if len(b) < HeadLen {
		return ErrMalformed
	}
	*r = Record{Kind: Kind(b[0] & 0xf), Status: Status(b[1]), Call: CallOf(b)}
	if b[0]>>4 != Version && !(r.Kind == Response && r.Status == WrongVersion) {
		return ErrVersion
	}
	if r.Kind == 0 || r.Kind >= kinds || b[3] != 0 || r.Status >= statuses || r.Kind != Response && r.Status != 0 {
		return ErrMalformed
	}
	name := int(b[2])
	if r.Kind != Request {
		r.Data = b[HeadLen:]
		if name > 0 || r.Kind == Cancellation && len(r.Data) > 0 {
			return ErrMalformed
		}
		return nil
	}
	if name == 0 || len(b) < RequestLen+name {
		return ErrMalformed
	}
	left := binary.BigEndian.Uint64(b[HeadLen:])
	if left > uint64(MaxLeft/time.Microsecond) {
		return ErrMalformed
	}
	r.Left = time.Duration(left) * time.Microsecond
	r.Service, r.Data = b[RequestLen:][:name], b[RequestLen+name:]
	return nil
}

// MaxLeft is the longest time until a deadline; one further away travels as this one.
const MaxLeft = 1 << 62 * time.Nanosecond
