package sim

import "math/bits"

// A wheel sorts events by time without comparing them to each other. It relies on time never going back.
//
// An instant is a number of 11 digits in base 64. Base is an instant that no event precedes. An event lives
// in the row of the highest digit in which it differs from base, in the slot of its own digit there:
//
//	             slot 0   1   2   3  ...  63
//	row 2 (4096 ns)  .   .   x   .        .      later than all of row 1
//	row 1   (64 ns)  .   .   .   x        x      later than all of row 0
//	row 0    (1 ns)  .   x   .   .        .      each slot is one instant: first in, first out
//
// So the earliest event is in the first slot in use of the lowest row in use. If that is row 0, take it.
// Otherwise move base to the slot's earliest event and file the slot's events again: all go to lower rows,
// which were empty. An event moves at most once per row, over memory in sequence, where a heap would compare
// its way through log n cache misses. Events of one instant are always in one slot, and are moved in order:
// ties need no number to keep their order.
type wheel struct {
	base int64
	rows uint16             // bit r: row r has events
	used [rows]uint64       // bit s: slot s has events
	slot [rows][digits]slot // by row and digit
	free *block             // emptied, for reuse
}

const (
	digitBits = 6
	digits    = 1 << digitBits
	rows      = 11 // of 6 bits: the 63 bits of an instant

	// blockEvents makes a block 512 bytes, one of the allocator's sizes.
	blockEvents = 30
)

type event struct {
	at int64 // nanoseconds from the origin, not negative
	f  func()
}

// slot is a list of blocks, in the order in which events came. An unused slot has none.
type slot struct {
	first, last *block
	min         int64 // of the events
}

// block holds events[from:to]; only the first of a list has from > 0, only the last has room.
type block struct {
	next     *block
	from, to int
	events   [blockEvents]event
}

func (w *wheel) push(e event) {
	row := 0
	if differs := uint64(e.at ^ w.base); differs >= digits {
		row = (bits.Len64(differs) - 1) / digitBits
	}
	digit := uint64(e.at) >> (row * digitBits) % digits
	s := &w.slot[row][digit]
	if s.last == nil {
		w.rows |= 1 << row
		w.used[row] |= 1 << digit
		s.first = w.newBlock()
		s.last, s.min = s.first, e.at
	} else if s.last.to == blockEvents {
		s.last.next = w.newBlock()
		s.last = s.last.next
	}
	s.min = min(s.min, e.at)
	s.last.events[s.last.to] = e
	s.last.to++
}

// pop removes and returns the earliest event. There must be one.
func (w *wheel) pop() event {
	if w.used[0] == 0 {
		w.lower()
	}
	digit := bits.TrailingZeros64(w.used[0])
	s := &w.slot[0][digit]
	b := s.first
	e := b.events[b.from]
	b.events[b.from].f = nil // so that the block does not keep it alive
	if b.from++; b.from == b.to {
		s.first = b.next
		if b.next == nil {
			w.clear(0, digit)
		}
		w.release(b)
	}
	return e
}

// earliest returns the instant of the earliest event. There must be one. It moves nothing, and must not:
// base would pass instants for which events may still come.
func (w *wheel) earliest() int64 {
	row, digit := w.first()
	return w.slot[row][digit].min
}

func (w *wheel) first() (row, digit int) {
	row = bits.TrailingZeros16(w.rows) % rows // the remainder spares bounds checks
	return row, bits.TrailingZeros64(w.used[row]) % digits
}

// lower files the events of the first slot in lower rows; one at least comes to row 0.
func (w *wheel) lower() {
	row, digit := w.first()
	s := w.slot[row][digit]
	w.clear(row, digit)
	w.base = s.min
	for b := s.first; b != nil; {
		for i := b.from; i < b.to; i++ {
			w.push(b.events[i])
			b.events[i].f = nil
		}
		next := b.next
		w.release(b)
		b = next
	}
}

// clear marks a slot as unused.
func (w *wheel) clear(row, digit int) {
	w.slot[row][digit] = slot{}
	if w.used[row] &^= 1 << digit; w.used[row] == 0 {
		w.rows &^= 1 << row
	}
}

func (w *wheel) newBlock() *block {
	b := w.free
	if b == nil {
		return new(block)
	}
	w.free, b.next = b.next, nil
	return b
}

func (w *wheel) release(b *block) {
	b.from, b.to, b.next = 0, 0, w.free
	w.free = b
}
