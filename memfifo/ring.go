package memfifo

import (
	"encoding/binary"
	"sync/atomic"
)

// ring is records in a ring of memory, one behind the other.
//
//	mem:  ... | length, record, padding | length, record, padding | free ...
//	          ^ head: the oldest                                  ^ tail
//
// One goroutine at a time appends, and one at a time takes out; these two need no lock between
// them.
type ring struct {
	mem      []byte
	head     atomic.Uint64 // of the oldest record
	tail     atomic.Uint64 // behind the newest
	fullHead uint64        // the head when a record found no room last; the appender's
}

const (
	ringHead  = 4 // a record's length
	ringAlign = 8
	ringSkip  = 1<<32 - 1 // in place of a length: the rest of the memory is not used
)

// longest is the longest record, in bytes.
func (r *ring) longest() int { return min(len(r.mem)/2-ringHead, MaxRecord) }

func (r *ring) empty() bool { return r.head.Load() == r.tail.Load() }

// used is how much of the memory is in use, at some instant of the call.
func (r *ring) used() int {
	for {
		head := r.head.Load()
		n := int(r.tail.Load() - head)
		if r.head.Load() == head { // else the tail may be of records that came when those were gone
			return n
		}
	}
}

// space is what a record takes.
func space(n int) uint64 { return uint64(n+ringHead+ringAlign-1) &^ (ringAlign - 1) }

// append puts a record at the tail, or returns false if there is no room.
func (r *ring) append(rec []byte) bool {
	head, tail, size := r.head.Load(), r.tail.Load(), uint64(len(r.mem))
	need, at, skip := space(len(rec)), tail%size, uint64(0)
	if at+need > size {
		skip = size - at
	}
	if tail-head+skip+need > size {
		r.fullHead = head
		return false
	}
	if skip > 0 {
		binary.NativeEndian.PutUint32(r.mem[at:], ringSkip)
		at, tail = 0, tail+skip
	}
	binary.NativeEndian.PutUint32(r.mem[at:], uint32(len(rec)))
	copy(r.mem[at+ringHead:], rec)
	r.tail.Store(tail + need)
	return true
}

// appender appends records that can be taken out only once all of them are there: it publishes the
// tail once.
type appender struct {
	r              *ring
	head, tail, at uint64 // at: the tail's place in memory
}

func (r *ring) begin() appender {
	tail := r.tail.Load()
	return appender{r, r.head.Load(), tail, tail % uint64(len(r.mem))}
}

// append puts a record behind the others. It returns false where ring.append has to look again: at
// the end of the memory, or if there is no room.
func (a *appender) append(rec []byte) bool {
	need, size := space(len(rec)), uint64(len(a.r.mem))
	if a.at+need > size || a.tail-a.head+need > size {
		return false
	}
	mem := a.r.mem[a.at : a.at+need]
	binary.NativeEndian.PutUint32(mem, uint32(len(rec)))
	copy(mem[ringHead:], rec)
	a.tail += need
	if a.at += need; a.at == size {
		a.at = 0
	}
	return true
}

// publish lets the records be taken out, and reports whether there are any.
func (a *appender) publish() bool {
	if a.tail == a.r.tail.Load() {
		return false
	}
	a.r.tail.Store(a.tail)
	return true
}

// madeRoom reports whether a record was taken out since one found no room.
func (r *ring) madeRoom() bool { return r.head.Load() != r.fullHead }

// oldest returns the oldest record, a view, and where it ends.
func (r *ring) oldest() (rec []byte, end uint64, ok bool) {
	head, size := r.head.Load(), uint64(len(r.mem))
	for head != r.tail.Load() {
		at := head % size
		n := binary.NativeEndian.Uint32(r.mem[at:])
		if n != ringSkip {
			return r.mem[at+ringHead:][:n:n], head + space(int(n)), true
		}
		head += size - at
	}
	return nil, 0, false
}
