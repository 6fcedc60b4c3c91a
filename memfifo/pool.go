package memfifo

import "github.com/rawlane/rawlane/mcd"

// pool keeps memory for another use, so that steady work allocates nothing. Domain.mu guards it.
type pool struct {
	frames      [][]byte
	requests    freeList[workRequest]
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

func (d *Domain) allocFrame() []byte {
	if n := len(d.pool.frames); n > 0 {
		b := d.pool.frames[n-1]
		d.pool.frames = d.pool.frames[:n-1]
		return b
	}
	return make([]byte, mcd.Headroom+d.frameSize)
}

func (d *Domain) freeFrame(b []byte) {
	if len(d.pool.frames) < spareFrames {
		d.pool.frames = append(d.pool.frames, b)
	}
}

// newRequest returns a work request that does what is asked.
func (d *Domain) newRequest(what *request) *workRequest {
	wr := d.pool.requests.get()
	wr.request = *what
	wr.restart()
	return wr
}

// freeRequest takes a work request back that is in no list.
func (d *Domain) freeRequest(wr *workRequest) {
	wr.data, wr.buf = nil, nil
	d.pool.requests.put(wr)
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
