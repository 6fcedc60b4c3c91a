package rpc

import (
	"encoding/binary"
	"errors"
	"time"
)

// version of the records' layout.
const version = 1

// kind is what a record is for.
type kind uint8

const (
	request kind = iota + 1
	response
	cancellation
	kinds
)

// status of a response.
type status uint8

const (
	ok         status = iota
	failed            // the handler has returned an error: the data is its text
	noService         // nobody serves it
	overloaded        // as many requests wait as may
	expired           // the deadline passed, or the call was cancelled, before the handler returned
	wrongVersion
	closing // the server's domain is being closed
	statuses
)

// record is a request, a response or a cancellation.
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
type record struct {
	kind    kind
	status  status
	call    uint64
	left    time.Duration // 0: no deadline
	service []byte        // a view of what was parsed, as data
	data    []byte
}

const (
	headLen    = 12
	requestLen = 20
)

// Errors of parse.
var (
	errMalformed = errors.New("malformed record")
	errVersion   = errors.New("record of another version")
)

// appendRequest appends a request to b.
func appendRequest(b []byte, call uint64, service string, left time.Duration, data []byte) []byte {
	b = append(b, version<<4|byte(request), 0, byte(len(service)), 0)
	b = binary.BigEndian.AppendUint64(b, call)
	b = binary.BigEndian.AppendUint64(b, uint64(left.Microseconds()))
	return append(append(b, service...), data...)
}

// appendHead appends a response without its data, or a cancellation.
func appendHead(b []byte, k kind, s status, call uint64) []byte {
	b = append(b, version<<4|byte(k), byte(s), 0, 0)
	return binary.BigEndian.AppendUint64(b, call)
}

// parse reads a record. With errVersion the call is known, and the kind is that of this version.
func (r *record) parse(b []byte) error {
	if len(b) < headLen {
		return errMalformed
	}
	*r = record{kind: kind(b[0] & 0xf), status: status(b[1]), call: binary.BigEndian.Uint64(b[4:])}
	if b[0]>>4 != version && !(r.kind == response && r.status == wrongVersion) {
		return errVersion
	}
	if r.kind == 0 || r.kind >= kinds || b[3] != 0 || r.status >= statuses || r.kind != response && r.status != 0 {
		return errMalformed
	}
	name := int(b[2])
	if r.kind != request {
		r.data = b[headLen:]
		if name > 0 || r.kind == cancellation && len(r.data) > 0 {
			return errMalformed
		}
		return nil
	}
	if name == 0 || len(b) < requestLen+name {
		return errMalformed
	}
	left := binary.BigEndian.Uint64(b[headLen:])
	if left > uint64(maxLeft/time.Microsecond) {
		return errMalformed
	}
	r.left = time.Duration(left) * time.Microsecond
	r.service, r.data = b[requestLen:][:name], b[requestLen+name:]
	return nil
}

// maxLeft is the longest time until a deadline; one further away travels as this one.
const maxLeft = 1 << 62 * time.Nanosecond
