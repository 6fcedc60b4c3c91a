package memfifo

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

// FIFO is a ring buffer in this node's memory, to which all nodes that have its key append records.
//
// Source: MBCF §2.1.
type FIFO struct {
	d    *Domain
	key  Key
	ring ring
	pops sync.Mutex // guards the oldest record

	waiters waitlist     // for a record; guarded by d.mu
	waiting atomic.Int32 // how many these are, or are about to be
	senders holdQueue    // that wait for room
	closed  bool         // guarded by d.mu

	expected senders // that push; guarded by d.mu
}

// MinFIFO is the least memory of a FIFO, in bytes.
const MinFIFO = 64

// NewFIFO makes mem a FIFO under an id. The memory is the FIFO's until Close. A record takes its
// length, 4 bytes, and what makes that a multiple of 8; it may be half as long as the memory, less
// 4, and at most MaxRecord. Windows and FIFOs have ids of their own. Errors: ErrTaken, ErrClosed;
// and if mem is shorter than MinFIFO.
func (d *Domain) NewFIFO(id uint16, mem []byte) (*FIFO, error) {
	if len(mem) < MinFIFO {
		return nil, fmt.Errorf("FIFO %d: %d bytes of memory are too few (want %d)", id, len(mem), MinFIFO)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.fifos[id] != nil || d.handlers[id] != nil {
		return nil, fmt.Errorf("FIFO %d: %w", id, ErrTaken)
	}
	f := &FIFO{d: d, key: Key{d.ep.Node(), id, secret()}, ring: ring{mem: mem[:len(mem)&^(ringAlign-1)]}}
	d.fifos[id] = f
	return f, nil
}

// Key returns what other nodes need to push.
func (f *FIFO) Key() Key { return f.key }

// Pop waits for the oldest record, copies it into b and removes it. It returns the record's length.
// If b is shorter, the record stays, and the error is io.ErrShortBuffer and says the length. Other
// errors: ErrClosed, the context's; a *SendersDownError if Expect has asked for it.
func (f *FIFO) Pop(ctx context.Context, b []byte) (int, error) {
	if n, ok, err := f.TryPop(b); ok || err != nil {
		return n, err
	}
	defer f.wakeNext()
	for {
		if err := f.wait(ctx); err != nil {
			return 0, err
		}
		if n, ok, err := f.TryPop(b); ok || err != nil {
			return n, err
		}
	}
}

// TryPop is Pop that does not wait: ok is false if there is no record.
func (f *FIFO) TryPop(b []byte) (n int, ok bool, err error) {
	f.pops.Lock() // without defer, which costs as much again
	rec, end, ok := f.ring.oldest()
	if !ok {
		f.pops.Unlock()
		return 0, false, nil
	}
	if n = len(rec); n > len(b) {
		f.pops.Unlock()
		return 0, true, fmt.Errorf("record of %d bytes, room for %d: %w", n, len(b), io.ErrShortBuffer)
	}
	copy(b, rec)
	f.ring.head.Store(end)
	f.pops.Unlock()
	f.resumeSenders()
	return n, true, nil
}

// Record is the oldest record of a FIFO, where it is.
type Record struct {
	Data []byte // a view of the FIFO's memory, valid until the record is removed
	end  uint64
}

// Peek returns the oldest record without removing it: ok is false if there is none. The view is
// valid until Release, or a Pop by any goroutine.
func (f *FIFO) Peek() (r Record, ok bool) {
	f.pops.Lock()
	defer f.pops.Unlock()
	r.Data, r.end, ok = f.ring.oldest()
	return r, ok
}

// Release removes a record that Peek has returned. It returns false, and removes nothing, if
// another goroutine has removed it before.
func (f *FIFO) Release(r Record) bool {
	f.pops.Lock()
	defer f.pops.Unlock()
	_, end, ok := f.ring.oldest()
	if !ok || end != r.end {
		return false
	}
	f.ring.head.Store(end)
	f.resumeSenders()
	return true
}

// resumeSenders lets those senders go on that wait for room, behind a record that was taken out.
func (f *FIFO) resumeSenders() {
	if f.senders.count.Load() > 0 {
		f.d.mu.Lock()
		defer f.d.mu.Unlock() // handlers take what is behind their records
		f.resume()
	}
}

// Wait returns when there is a record. Errors: ErrClosed, the context's; a *SendersDownError if
// Expect has asked for it.
func (f *FIFO) Wait(ctx context.Context) error {
	if !f.ring.empty() {
		return nil
	}
	defer f.wakeNext()
	return f.wait(ctx)
}

// wakeNext wakes one of those who wait if there is a record. What comes wakes one, which it is
// enough for: who was woken wakes the next one, as there may be more, or it leaves the record. One
// that did not wait need not: what it leaves has woken another one.
func (f *FIFO) wakeNext() {
	if f.waiting.Load() > 0 && !f.ring.empty() {
		f.d.mu.Lock()
		f.waiters.wakeOne()
		f.d.mu.Unlock()
	}
}

// wait is Wait. The caller calls wakeNext when it has done what it waited for.
func (f *FIFO) wait(ctx context.Context) error {
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	return f.d.sleepUntil(ctx, &f.waiters, f.hasEnded, &f.expected, func() bool { return !f.ring.empty() })
}

// hasEnded reports whether the FIFO is closed. The caller holds d.mu.
func (f *FIFO) hasEnded() bool { return f.closed }

// Len returns how many bytes of the memory are in use: records, their lengths, and padding, also
// what is left free at the end of the memory as no record fitted there. It is 0 if there is no
// record, and only then.
func (f *FIFO) Len() int { return f.ring.used() }

// Close ends the FIFO: further pushes are refused, and those that wait for room, too. The records
// that are there can still be popped.
func (f *FIFO) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.expected.release()
		delete(f.d.fifos, f.key.ID)
		f.d.recentQ = nil
		f.waiters.wake(nil) // for records that are there, and else they find that it is closed
		f.resume()
	}
	return nil
}

// checkPush returns the FIFO or handler for a record of n bytes, or says why it is refused. The
// caller holds mu.
func (d *Domain) checkPush(id uint16, secret uint64, n int) (f *FIFO, h *Handler, refusal Refusal) {
	if f = d.recentQ; f == nil || f.key.ID != id {
		h, f = d.handlers[id], d.fifos[id]
		d.recentQ = f
	}
	if h != nil {
		switch {
		case h.key.Secret != secret:
			return nil, nil, WrongKey
		case n > MaxRecord:
			return nil, nil, OutOfRange
		}
		return nil, h, 0
	}
	switch {
	case f == nil:
		return nil, nil, NoSuchID
	case f.key.Secret != secret:
		return nil, nil, WrongKey
	case n > f.ring.longest():
		return nil, nil, OutOfRange
	}
	return f, nil, 0
}

// tryAppend appends a record of this node, or says why not. The caller holds mu.
func (d *Domain) tryAppend(id uint16, secret uint64, rec []byte) Refusal {
	f, h, refusal := d.checkPush(id, secret, len(rec))
	switch {
	case refusal != 0:
		return refusal
	case h != nil:
		h.call(nil, rec)
	case !f.append(nil, rec):
		return Full
	}
	return 0
}

// append puts a record at the tail. It returns false if there is no room, or if other senders wait
// for it: room is given in turn. The caller holds d.mu.
func (f *FIFO) append(from *peer, rec []byte) bool {
	if !f.senders.admits(from) || !f.ring.append(rec) {
		return false
	}
	f.senders.served = true
	if f.waiting.Load() > 0 {
		f.waiters.wakeOne()
	}
	return true
}
