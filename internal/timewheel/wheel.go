// Package timewheel is the event queue of simulations: a priority queue by time, for times that
// never go back.
package timewheel

import (
	"math/bits"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Wheel is a hierarchical timing wheel: it returns events in the order of their instants, those
// of one instant in the order in which they were pushed. It relies on no event being pushed for
// an instant before that of the last event popped. The zero Wheel is empty.
//
// An instant is a number of 11 digits in base 64. Base is an instant that no event precedes. An
// event is on the level of the highest digit in which it differs from base, in the slot of its
// own digit there:
//
//	               slot 0   1   2   3  ...  63
//	level 2 (4096 ns)  .   .   x   .        .      later than all of level 1
//	level 1   (64 ns)  .   .   .   x        x      later than all of level 0
//	level 0    (1 ns)  .   x   .   .        .      each slot is one instant: first in, first out
//
// So the earliest event is in the first used slot of the lowest used level. On level 0, Pop takes
// it. From a higher level, Pop moves base to the slot's earliest event and pushes the slot's
// events again: all go to lower levels, which were empty. An event moves at most once for each
// level, over memory in sequence, where a heap compares its way through log n cache misses.
//
// Source: Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987; Ahuja and
// others, "Faster algorithms for the shortest path problem" (radix heap), 1990.
type Wheel[T any] struct {
	len  int
	base int64
	used uint16         // bit l: level l has events
	on   [levels]uint64 // bit s: slot s of the level has events
	slot [levels][slots]slot[T]
	free *block[T] // emptied, for reuse
}

const (
	digitBits = 6
	slots     = 1 << digitBits
	levels    = 11 // of 6 bits: the 63 bits of an instant

	// blockEvents makes a block of functions 512 bytes, one of the allocator's sizes.
	blockEvents = 30
)

type event[T any] struct {
	at    int64 // nanoseconds from the origin, not negative
	value T
}

// slot is a list of blocks, in the order of pushes. An unused slot has none.
type slot[T any] struct {
	first, last *block[T]
	min         int64 // of the events
}

// block holds events[from:to]; only the first of a list has from > 0, only the last has room.
type block[T any] struct {
	next     *block[T]
	from, to int
	events   [blockEvents]event[T]
}

// Len returns how many events there are.
func (w *Wheel[T]) Len() int { return w.len }

// Push adds an event.
func (w *Wheel[T]) Push(at monotime.Time, value T) {
	w.len++
	w.push(event[T]{int64(at.Since()), value})
}

func (w *Wheel[T]) push(e event[T]) {
	level := 0
	if differs := uint64(e.at ^ w.base); differs >= slots {
		level = (bits.Len64(differs) - 1) / digitBits
	}
	digit := uint64(e.at) >> (level * digitBits) % slots
	s := &w.slot[level][digit]
	if s.last == nil {
		w.used |= 1 << level
		w.on[level] |= 1 << digit
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

// Pop removes and returns the earliest event. There must be one.
func (w *Wheel[T]) Pop() (at monotime.Time, value T) {
	if w.on[0] == 0 {
		w.cascade()
	}
	w.len--
	digit := bits.TrailingZeros64(w.on[0])
	s := &w.slot[0][digit]
	b := s.first
	e := b.events[b.from]
	b.events[b.from] = event[T]{} // so that the block does not keep it alive
	if b.from++; b.from == b.to {
		s.first = b.next
		if b.next == nil {
			w.clear(0, digit)
		}
		w.release(b)
	}
	return instant(e.at), e.value
}

// Next returns the instant of the earliest event. There must be one. It moves nothing: base would
// pass instants for which events may still be pushed.
func (w *Wheel[T]) Next() monotime.Time {
	level, digit := w.first()
	return instant(w.slot[level][digit].min)
}

func (w *Wheel[T]) first() (level, digit int) {
	level = bits.TrailingZeros16(w.used) % levels // the remainder spares bounds checks
	return level, bits.TrailingZeros64(w.on[level]) % slots
}

// cascade moves the events of the first slot to lower levels; at least one comes to level 0.
func (w *Wheel[T]) cascade() {
	level, digit := w.first()
	s := w.slot[level][digit]
	w.clear(level, digit)
	w.base = s.min
	for b := s.first; b != nil; {
		for i := b.from; i < b.to; i++ {
			w.push(b.events[i])
			b.events[i] = event[T]{}
		}
		next := b.next
		w.release(b)
		b = next
	}
}

// clear marks a slot as unused.
func (w *Wheel[T]) clear(level, digit int) {
	w.slot[level][digit] = slot[T]{}
	if w.on[level] &^= 1 << digit; w.on[level] == 0 {
		w.used &^= 1 << level
	}
}

func (w *Wheel[T]) newBlock() *block[T] {
	b := w.free
	if b == nil {
		return new(block[T])
	}
	w.free, b.next = b.next, nil
	return b
}

func (w *Wheel[T]) release(b *block[T]) {
	b.from, b.to, b.next = 0, 0, w.free
	w.free = b
}

func instant(ns int64) monotime.Time { return monotime.At(time.Duration(ns)) }
