package memfifo

import (
	"sync/atomic"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// pool keeps memory for another use, so that steady work allocates nothing. Domain.mu guards it.
type pool struct {
	frames      *reliable.Memory
	requests    freeList[workRequest]
	unused      atomic.Pointer[workRequest] // a stack of more of them, which needs no mu
	completions freeList[mcd.Completion]
	record      []byte // of one that came in parts
}

// freeList is objects that nothing uses.
type freeList[T any] []*T

// get returns one of them, or a new one.
func (l *freeList[T]) get() *T {
	n := len(*l) - 1
	if n < 0 {
		return new(T)
	}
	x := (*l)[n]
	*l = (*l)[:n]
	return x
}

func (l *freeList[T]) put(x *T) { *l = append(*l, x) }

// newRequest returns a work request that does what is asked at a peer.
func (d *Domain) newRequest(p *peer, what *request) *workRequest {
	if len(d.pool.requests) == 0 {
		for wr := d.pool.unused.Swap(nil); wr != nil; wr = wr.nextUnused {
			d.pool.requests.put(wr)
		}
	}
	wr := d.pool.requests.get()
	wr.request, wr.peer = *what, p
	wr.restart()
	return wr
}

// maxKept bounds the memory for a record that a work request keeps.
const maxKept = 256

// freeRequest takes a work request back that is in no list. It needs no mu: where thousands of
// goroutines wait, each would stand in line for it a second time.
func (d *Domain) freeRequest(wr *workRequest) {
	wr.data, wr.buf, wr.wanted, wr.sent = nil, nil, nil, nil
	if cap(wr.copied) > maxKept {
		wr.copied = nil
	}
	for {
		wr.nextUnused = d.pool.unused.Load()
		if d.pool.unused.CompareAndSwap(wr.nextUnused, wr) {
			return
		}
	}
}

// recordBuffer returns memory for the parts of a record.
func (d *Domain) recordBuffer(size int) []byte {
	b := d.pool.record
	d.pool.record = nil
	if cap(b) < size {
		b = make([]byte, 0, size)
	}
	return b[:0]
}

func (d *Domain) freeRecord(b []byte) {
	if cap(b) > cap(d.pool.record) {
		d.pool.record = b
	}
}
