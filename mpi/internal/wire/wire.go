// Package wire is the layout of the records of package mpi.
package wire

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/rawlane/rawlane/mpi/internal/matching"
)

// Version of the records' layout.
const Version = 2

// HeadLen is the length of what goes before the bytes of an eager message; with an id it is
// HeadLen + 8.
const HeadLen = 12

// Flags.
const (
	flagMore    = 1 << iota // sends wait behind
	flagID                  // of an eager message: it has an id, as its sender waits for Matched
	flagDropped             // of Matched: nobody receives the message
	flags       = flagMore | flagID | flagDropped
)

// Lengths of the other kinds.
const (
	longLen   = 40 // Request, Offer, Done
	shortLen  = 12 // Matched, Withdraw, Withdrawn, Waiting, Gone
	creditLen = 16
)

// Errors of Parse.
var (
	ErrMalformed = errors.New("malformed record")
	ErrVersion   = errors.New("record of another version")
)

// Append appends a record to b. The bytes of an eager message follow.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 flags: 1 sends wait behind, 2 there is an id, 4 nobody receives the message
//	 2 window, 2 bytes                           Request, Offer; else 0
//	 4 context, 4 bytes                          Eager, Request, Offer, Done
//	 8 tag, 4 bytes
//	12 id, 8 bytes                               of an eager message: if flag 2 is set
//	20 bytes of the message or the receive, 8    Request, Offer, Done
//	28 secret of the window, 8 bytes
//	36 messages taken, 4 bytes                   Offer
//	 4 id, 8 bytes                               Matched, Withdraw, Withdrawn; 0 in Waiting, Gone
//	 4 headers, bytes, messages taken, 4 each    Credit
//
// Integers are big-endian.
func Append(b []byte, r *matching.Record) []byte {
	flag := byte(0)
	if r.More {
		flag |= flagMore
	}
	if r.Dropped {
		flag |= flagDropped
	}
	if r.Kind == matching.Eager && r.ID != 0 {
		flag |= flagID
	}
	b = append(b, Version<<4|byte(r.Kind), flag)
	n := binary.BigEndian
	b = n.AppendUint16(b, r.Memory.Window)
	switch r.Kind {
	case matching.Matched, matching.Withdraw, matching.Withdrawn, matching.Waiting, matching.Gone:
		return n.AppendUint64(b, r.ID)
	case matching.Credit:
		b = n.AppendUint32(b, uint32(r.Headers))
		b = n.AppendUint32(b, uint32(r.Bytes))
		return n.AppendUint32(b, r.Seen)
	}
	b = n.AppendUint32(b, r.Context)
	b = n.AppendUint32(b, uint32(r.Tag))
	if r.Kind == matching.Eager {
		if r.ID != 0 {
			b = n.AppendUint64(b, r.ID)
		}
		return b
	}
	b = n.AppendUint64(b, r.ID)
	b = n.AppendUint64(b, uint64(r.Size))
	b = n.AppendUint64(b, r.Memory.Secret)
	return n.AppendUint32(b, r.Seen)
}

// Parse reads a record. data is the bytes of an eager message, a view of b.
func Parse(r *matching.Record, b []byte) (data []byte, err error) {
	if len(b) < HeadLen {
		return nil, ErrMalformed
	}
	if b[0]>>4 != Version {
		return nil, ErrVersion
	}
	n := binary.BigEndian
	*r = matching.Record{Kind: matching.Kind(b[0] & 0xf), More: b[1]&flagMore != 0, Dropped: b[1]&flagDropped != 0}
	r.Memory.Window = n.Uint16(b[2:])
	if b[1]&^flags != 0 || b[1]&flagID != 0 && r.Kind != matching.Eager {
		return nil, ErrMalformed
	}
	ok := false
	switch r.Kind {
	case matching.Matched, matching.Withdraw, matching.Withdrawn, matching.Waiting, matching.Gone:
		r.ID = n.Uint64(b[4:])
		ok = len(b) == shortLen
	case matching.Credit:
		if ok = len(b) == creditLen; ok {
			r.Headers, r.Bytes, r.Seen = int(int32(n.Uint32(b[4:]))), int(int32(n.Uint32(b[8:]))), n.Uint32(b[12:])
		}
	case matching.Eager:
		r.Context, r.Tag = n.Uint32(b[4:]), int32(n.Uint32(b[8:]))
		data, ok = b[HeadLen:], true
		if b[1]&flagID != 0 {
			if ok = len(data) >= 8; ok {
				r.ID, data = n.Uint64(data), data[8:]
				ok = r.ID != 0
			}
		}
		r.Size = len(data)
	case matching.Request, matching.Offer, matching.Done:
		if ok = len(b) == longLen; ok {
			r.Context, r.Tag = n.Uint32(b[4:]), int32(n.Uint32(b[8:]))
			r.ID, r.Memory.Secret, r.Seen = n.Uint64(b[12:]), n.Uint64(b[28:]), n.Uint32(b[36:])
			size := n.Uint64(b[20:])
			r.Size, ok = int(size), size <= math.MaxInt
		}
	}
	if !ok || !plain(r) {
		return nil, ErrMalformed
	}
	return data, nil
}

// plain reports whether a record has no more than what its kind has.
func plain(r *matching.Record) bool {
	memory := r.Kind == matching.Request || r.Kind == matching.Offer
	message := r.Kind == matching.Eager || r.Kind == matching.Request
	seen := r.Kind == matching.Offer || r.Kind == matching.Credit
	return (memory || r.Memory == matching.Memory{}) && (message || !r.More) && (seen || r.Seen == 0) &&
		(r.Kind == matching.Matched || !r.Dropped) &&
		(r.Kind != matching.Waiting && r.Kind != matching.Gone || r.ID == 0)
}
