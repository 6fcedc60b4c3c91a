package wire

import (
	"encoding/binary"
)

// WindowKind says what a record to a window is.
type WindowKind uint8

// The kinds of records between the processes of a window.
const (
	Accumulate  WindowKind = iota + 1 // update elements
	Fetch                             // update elements, and answer with what they were: Value
	CompareSwap                       // data is two elements; the answer is Value
	Value                             // elements as they were
	Lock                              // the answer is Granted
	Granted                           //
	Release                           // a lock that was granted, or is waited for
	Post                              // the sender's memory is exposed to this process
	Complete                          // the sender has ended its access
	Freed                             // the sender has freed the window, and cannot wait for this process
	windowKinds
)

// WindowRecord is a record to a window.
type WindowRecord struct {
	Kind      WindowKind
	Update    uint8 // Accumulate, Fetch
	Exclusive bool  // Lock
	Context   uint32
	ID        uint32
	At        uint64 // of the first element
	Data      []byte
}

// Lengths of what goes before the data.
const (
	WindowHeadLen   = 12 // all kinds but
	WindowUpdateLen = 20 // Accumulate, Fetch, CompareSwap
)

// updates reports whether a record is for elements of the window.
func (k WindowKind) updates() bool { return k >= Accumulate && k <= CompareSwap }

// AppendWindow appends a record to a window to b.
//
//	 0 version (4 bits), kind (4 bits)
//	 1 how elements are updated                  Accumulate, Fetch; of Lock: 1 exclusive, 0 shared
//	 2 0, 2 bytes
//	 4 context of the window's communicator, 4 bytes
//	 8 id, 4 bytes                               Fetch, CompareSwap, Value, Lock, Granted, Release
//	12 number of the first element, 8 bytes      Accumulate, Fetch, CompareSwap
//	20 elements                                  the same; of Value at 12
//
// Integers are big-endian; elements are as they are in memory.
func AppendWindow(b []byte, r *WindowRecord) []byte {
	how := r.Update
	if r.Exclusive {
		how = 1
	}
	n := binary.BigEndian
	b = n.AppendUint32(append(b, Version<<4|byte(r.Kind), how, 0, 0), r.Context)
	b = n.AppendUint32(b, r.ID)
	if r.Kind.updates() {
		b = n.AppendUint64(b, r.At)
	}
	return append(b, r.Data...)
}

// ParseWindow reads a record to a window. Its data is a view of b.
func ParseWindow(r *WindowRecord, b []byte) error {
	if len(b) < WindowHeadLen {
		return ErrMalformed
	}
	if b[0]>>4 != Version {
		return ErrVersion
	}
	n := binary.BigEndian
	*r = WindowRecord{Kind: WindowKind(b[0] & 0xf), Context: n.Uint32(b[4:]), ID: n.Uint32(b[8:])}
	how, data := b[1], b[WindowHeadLen:]
	switch {
	case r.Kind == 0, r.Kind >= windowKinds, b[2] != 0, b[3] != 0:
		return ErrMalformed
	case r.Kind == Accumulate, r.Kind == Fetch:
		r.Update = how
	case r.Kind == Lock && how <= 1:
		r.Exclusive = how == 1
	case how != 0:
		return ErrMalformed
	}
	if r.Kind.updates() {
		if len(b) < WindowUpdateLen {
			return ErrMalformed
		}
		r.At, data = n.Uint64(data), b[WindowUpdateLen:]
	}
	hasID := r.Kind != Accumulate && r.Kind != Post && r.Kind != Complete && r.Kind != Freed
	hasData := r.Kind.updates() || r.Kind == Value
	if hasID != (r.ID != 0) || hasData != (len(data) > 0) {
		return ErrMalformed
	}
	if hasData {
		r.Data = data
	}
	return nil
}
