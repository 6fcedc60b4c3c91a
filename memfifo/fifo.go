package memfifo

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// FIFO is a ring buffer in this node's memory, to which all who have its key append records.
//
//	mem:  ... | length, record, padding | length, record, padding | free ...
//	          ^ head: the oldest                                  ^ tail
type FIFO struct {
	d    *Domain
	key  Key
	mem  []byte
	head atomic.Uint64 // of the oldest record; moved by those who take
	tail atomic.Uint64 // behind the newest; moved by the endpoint's progress, under d.mu
	turn sync.Mutex    // of those who take: guards the oldest record

	waiters waitlist // for a record, guarded by d.mu
	waiting atomic.Int32
	held    []*peer // whose requests wait for room; guarded by d.mu
	holds   atomic.Int32
	full    uint64 // the head when a record found no room last; guarded by d.mu
	closed  bool   // guarded by d.mu
}

const (
	fifoHead  = 4 // a record's length
	fifoAlign = 8
	fifoSkip  = 1<<32 - 1 // in place of a length: the rest of the memory is not used
	// MinFIFO is the least memory of a FIFO.
	MinFIFO = 64
)

// NewFIFO makes mem a FIFO under an id. The memory is the FIFO's until Close. A record takes its length, 4 bytes, and what
// makes that a multiple of 8; it may be half as long as the memory, less 4, and at most MaxRecord. Windows and FIFOs count their
// ids apart. ErrTaken, ErrClosed; an error, too, if mem is shorter than MinFIFO.
func (d *Domain) NewFIFO(id uint16, mem []byte) (*FIFO, error) {
	if len(mem) < MinFIFO {
		return nil, fmt.Errorf("FIFO %d: %d bytes of memory are too few (want %d)", id, len(mem), MinFIFO)
	}
	mem = mem[:len(mem)&^(fifoAlign-1)]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if d.fifos[id] != nil {
		return nil, fmt.Errorf("FIFO %d: %w", id, ErrTaken)
	}
	f := &FIFO{d: d, key: Key{d.ep.Node(), id, secret()}, mem: mem}
	d.fifos[id] = f
	return f, nil
}

// Key returns what others need to push.
func (f *FIFO) Key() Key { return f.key }

// longest is the longest record, in bytes.
func (f *FIFO) longest() int { return min(len(f.mem)/2-fifoHead, MaxRecord) }

// space is what a record takes.
func space(n int) uint64 { return uint64(n+fifoHead+fifoAlign-1) &^ (fifoAlign - 1) }

// append puts a record at the tail, or returns false if there is no room. The caller holds d.mu.
func (f *FIFO) append(rec []byte) bool {
	head, tail, size := f.head.Load(), f.tail.Load(), uint64(len(f.mem))
	need := space(len(rec))
	at := tail % size
	skip := uint64(0)
	if at+need > size {
		skip = size - at
	}
	if tail-head+skip+need > size {
		f.full = head
		return false
	}
	if skip > 0 {
		binary.NativeEndian.PutUint32(f.mem[at:], fifoSkip)
		at, tail = 0, tail+skip
	}
	binary.NativeEndian.PutUint32(f.mem[at:], uint32(len(rec)))
	copy(f.mem[at+fifoHead:], rec)
	f.tail.Store(tail + need)
	if f.waiting.Load() > 0 {
		f.waiters.wake(nil)
	}
	return true
}

// oldest returns the oldest record, a view, and where it ends. The caller has the turn.
func (f *FIFO) oldest() (rec []byte, end uint64, ok bool) {
	head, size := f.head.Load(), uint64(len(f.mem))
	for head != f.tail.Load() {
		at := head % size
		n := binary.NativeEndian.Uint32(f.mem[at:])
		if n != fifoSkip {
			return f.mem[at+fifoHead:][:n:n], head + space(int(n)), true
		}
		head += size - at
	}
	return nil, 0, false
}

// remove takes the oldest record out, and lets those go on who wait for room.
func (f *FIFO) remove(end uint64) {
	f.head.Store(end)
	if f.holds.Load() > 0 {
		f.resume()
	}
}

// Pop waits for the oldest record, copies it into b and takes it out. It returns its length. If b is shorter, nothing is
// taken out, and the error is io.ErrShortBuffer and says the length. ErrClosed, the context's error.
func (f *FIFO) Pop(ctx context.Context, b []byte) (int, error) {
	for {
		n, ok, err := f.TryPop(b)
		if ok || err != nil {
			return n, err
		}
		if err := f.await(ctx); err != nil {
			return 0, err
		}
	}
}

// TryPop is Pop that does not wait: ok is false if there is no record.
func (f *FIFO) TryPop(b []byte) (n int, ok bool, err error) {
	f.turn.Lock()
	defer f.turn.Unlock()
	rec, end, ok := f.oldest()
	if !ok {
		return 0, false, nil
	}
	if len(rec) > len(b) {
		return 0, true, fmt.Errorf("record of %d bytes, room for %d: %w", len(rec), len(b), io.ErrShortBuffer)
	}
	n = copy(b, rec)
	f.remove(end)
	return n, true, nil
}

// Peek returns the oldest record, a view of the FIFO's memory, without taking it out: ok is false if there is none. The view is
// valid until Release, or a Pop by anybody.
func (f *FIFO) Peek() (rec []byte, ok bool) {
	f.turn.Lock()
	defer f.turn.Unlock()
	rec, _, ok = f.oldest()
	return rec, ok
}

// Release takes the oldest record out.
func (f *FIFO) Release() {
	f.turn.Lock()
	defer f.turn.Unlock()
	if _, end, ok := f.oldest(); ok {
		f.remove(end)
	}
}

// Wait returns when there is a record.
func (f *FIFO) Wait(ctx context.Context) error {
	for f.head.Load() == f.tail.Load() {
		if err := f.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the next record, unless there is one.
func (f *FIFO) await(ctx context.Context) error {
	f.d.mu.Lock()
	if f.closed || f.d.closed {
		f.d.mu.Unlock()
		return ErrClosed
	}
	f.waiting.Add(1)
	defer f.waiting.Add(-1)
	if f.head.Load() != f.tail.Load() {
		f.d.mu.Unlock()
		return nil
	}
	w := f.d.getWaiter()
	f.waiters.add(w)
	f.d.mu.Unlock()
	return f.d.sleep(ctx, w, &f.waiters)
}

// Len returns how many bytes of the memory are in use: records, their lengths, and padding, also what is left free at the end of the
// memory as no record fitted there. It is 0 if there is no record, and only then.
func (f *FIFO) Len() int { return int(f.tail.Load() - f.head.Load()) }

// Close ends the FIFO: further pushes are refused, and those that wait for room, too. Records that nobody took are lost.
func (f *FIFO) Close() error {
	f.d.mu.Lock()
	if f.closed {
		f.d.mu.Unlock()
		return nil
	}
	f.closed = true
	delete(f.d.fifos, f.key.ID)
	f.waiters.wake(ErrClosed)
	f.d.mu.Unlock()
	f.resume()
	return nil
}

// hold notes that a peer's requests wait for room. It returns false if some was made meanwhile, by one who did not see the
// note: then they do not wait.
func (f *FIFO) hold(p *peer) bool {
	if !slices.Contains(f.held, p) {
		f.held = append(f.held, p)
		f.holds.Add(1)
	}
	if f.head.Load() == f.full {
		return true
	}
	f.unhold(p)
	return false
}

// unhold forgets a peer.
func (f *FIFO) unhold(p *peer) {
	if i := slices.Index(f.held, p); i >= 0 {
		f.held = slices.Delete(f.held, i, i+1)
		f.holds.Add(-1)
	}
}

// resume has those go on who waited for room.
func (f *FIFO) resume() {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	waiting := f.held
	f.held = nil
	f.holds.Store(0)
	now := clock.Now()
	for _, p := range waiting {
		if records, ok := p.conn.Buffered(reliable.Requests); ok {
			p.take(now, reliable.Requests, records)
			p.pump(now)
		}
	}
}

// applyPush appends a record, or a part of one. It returns the FIFO if that has no room for it.
func (p *peer) applyPush(now monotime.Time, r *record) *FIFO {
	id, secret, total := r.fixed.u16(), r.fixed.u64(), int(r.fixed.u32())
	f, refusal := p.d.checkFIFO(id, secret, total)
	if refusal != 0 {
		if r.flags&flagLast != 0 { // once for all its parts
			p.partial = p.partial[:0]
			p.refuse(now, id, refusal)
		}
		return nil
	}
	data := r.data
	if r.flags&(flagFirst|flagLast) != flagFirst|flagLast {
		if r.flags&flagFirst != 0 {
			p.partial = p.partial[:0]
		}
		if r.flags&flagLast == 0 {
			p.keep(data, total)
			return nil
		}
		if len(p.partial)+len(data) != total {
			p.d.stats.Malformed++
			p.partial = p.partial[:0]
			return nil
		}
		data = append(p.partial, data...) // kept as it is, in case that this is tried again
	} else if len(data) != total {
		p.d.stats.Malformed++
		return nil
	}
	if !f.append(data) {
		return f
	}
	if cap(p.partial) > 0 {
		p.partial = nil
	}
	return nil
}

// keep collects a long record's parts.
func (p *peer) keep(data []byte, total int) {
	if len(p.partial)+len(data) > total {
		p.d.stats.Malformed++
		return
	}
	p.partial = append(p.partial, data...)
}

func (d *Domain) checkFIFO(id uint16, secret uint64, n int) (*FIFO, Refusal) {
	f := d.fifos[id]
	switch {
	case f == nil:
		return nil, NoSuchID
	case f.key.Secret != secret:
		return nil, WrongKey
	case n > f.longest():
		return nil, OutOfRange
	}
	return f, 0
}

// pushHere is a Push to a FIFO of this node. It does not wait: who would make room? The caller holds mu.
func (d *Domain) pushHere(k Key, rec []byte) error {
	if d.closed {
		return ErrClosed
	}
	f, refusal := d.checkFIFO(k.ID, k.Secret, len(rec))
	if refusal != 0 {
		return &AccessError{Node: k.Node, ID: k.ID, Reason: refusal, Count: 1}
	}
	if !f.append(rec) {
		return ErrFull
	}
	return nil
}
