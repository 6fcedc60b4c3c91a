package records

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Bell is a line of memory by which the writers of a reader's rings tell it which to look at, and
// by which it says whether it is to be woken. A second line, which changes once at most, tells the
// reader how its own frames are received.
//
//	 0  a bit for each ring that may have something
//	56  a number for each sleep of the reader: odd while it sleeps, and it grows. The reader's
//	64  not 0: a writer may alter the frames that the reader sends to it, before it looks at them
//
// A writer shows its records first, then sets its bit, and then looks whether the reader sleeps. A
// reader that is to sleep says so first, and then looks at the bits; one that polls takes the bits
// first, and then looks at the rings. All of these are sequentially consistent, so that one sees
// the other. Each writer that finds the reader asleep wakes it, once a sleep: so one that dies or
// is stopped before it does keeps no other from it.
type Bell struct {
	words   []atomic.Uint64
	state   *atomic.Uint64
	altered *atomic.Uint64
	sleep   uint64 // the reader's own state
}

const (
	// BellBytes is the size of a bell's memory.
	BellBytes = 2 * bellLine
	// Rings is how many rings a reader has at most.
	Rings = (bellLine - wordLen) * 8

	bellLine  = 64
	bellWords = Rings / 64
)

// NewBell makes a bell of memory that is all zero.
func NewBell(memory []byte) *Bell {
	return &Bell{
		words:   unsafe.Slice(word(memory, 0), bellWords),
		state:   word(memory, bellLine-wordLen),
		altered: word(memory, bellLine),
	}
}

// Ring tells the reader that ring i has something.
func (b *Bell) Ring(i int) {
	w, bit := &b.words[i/64], uint64(1)<<(i%64)
	if w.Load()&bit == 0 { // else the reader has not looked since, and will
		w.Or(bit)
	}
}

// Asleep returns a number for the sleep that the reader is in, or 0. A writer calls it after Ring,
// and wakes the reader unless it has in that sleep.
func (b *Bell) Asleep() uint64 {
	if s := b.state.Load(); s&1 != 0 {
		return s
	}
	return 0
}

// Alter tells the reader that frames that it sends may be altered where they are received. It stays
// so. Links that have one line alone, as older versions do, do not look there.
func (b *Bell) Alter() { b.altered.Store(1) }

// Altered reports whether a writer has called Alter.
func (b *Bell) Altered() bool { return b.altered.Load() != 0 }

// Sleep says that the reader sleeps. It looks at the bits once more afterwards. What others have
// written there does not matter.
func (b *Bell) Sleep() {
	b.sleep = (b.sleep + 2) | 1
	b.state.Store(b.sleep)
}

// Awake says that the reader need not be woken.
func (b *Bell) Awake() {
	if b.sleep&1 != 0 {
		b.sleep++
		b.state.Store(b.sleep)
	}
}

// Rung reports whether there are bits of the first n rings.
func (b *Bell) Rung(n int) bool {
	for i := range b.words[:(n+63)/64] {
		if b.words[i].Load() != 0 {
			return true
		}
	}
	return false
}

// Take moves the bits of the first n rings into set, and reports whether set has any then.
func (b *Bell) Take(n int, set *Set) bool {
	var some uint64
	for i := range b.words[:(n+63)/64] {
		if b.words[i].Load() != 0 {
			set[i] |= b.words[i].Swap(0)
		}
		some |= set[i]
	}
	return some != 0
}

// Set is a set of rings.
type Set [bellWords]uint64

// Next returns the first ring of the set from i on, or -1.
func (s *Set) Next(i int) int {
	for w := i / 64; w < len(s); w++ {
		v := s[w]
		if w == i/64 {
			v &= ^uint64(0) << (i % 64)
		}
		if v != 0 {
			return w*64 + bits.TrailingZeros64(v)
		}
	}
	return -1
}

// Remove takes ring i out of the set.
func (s *Set) Remove(i int) { s[i/64] &^= 1 << (i % 64) }

// Add puts ring i into the set.
func (s *Set) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Empty reports whether there is no ring in the set.
func (s *Set) Empty() bool { return *s == Set{} }
