package barrier

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Mask is a set of small numbers: of nodes, where a group is made, and of ranks, where a call takes a part of the
// group. The zero Mask is empty, and stands for all where it is not given.
//
// Source: SCMD §3 (barrier mask).
type Mask struct{ words []uint64 }

// Of returns the mask of the given numbers.
func Of[N ~int | ~uint16](numbers ...N) (m Mask) {
	for _, n := range numbers {
		m.add(int(n))
	}
	return m
}

// Bits returns the mask of the bits that are set: bit i of word w is number 64 w + i.
func Bits(words ...uint64) Mask {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return Mask{slices.Clone(words)}
}

func (m *Mask) add(n int) {
	if n < 0 {
		panic(fmt.Sprintf("barrier: number %d in a mask (want 0 or more)", n))
	}
	for len(m.words) <= n/64 {
		m.words = append(m.words, 0)
	}
	m.words[n/64] |= 1 << (n % 64)
}

// Has reports whether n is in m.
func (m Mask) Has(n int) bool {
	return n >= 0 && n/64 < len(m.words) && m.words[n/64]&(1<<(n%64)) != 0
}

// Len returns how many numbers are in m.
func (m Mask) Len() (n int) {
	for _, w := range m.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// IsZero reports whether m is empty.
func (m Mask) IsZero() bool { return m.Len() == 0 }

// Numbers returns what is in m, ascending.
func (m Mask) Numbers() []int {
	all := make([]int, 0, m.Len())
	for i, w := range m.words {
		for ; w != 0; w &= w - 1 {
			all = append(all, 64*i+bits.TrailingZeros64(w))
		}
	}
	return all
}

// String formats m as "{0 3 5}".
func (m Mask) String() string {
	return "{" + strings.Trim(fmt.Sprint(m.Numbers()), "[]") + "}"
}

func (m Mask) equal(other Mask) bool { return slices.Equal(m.words, other.words) }
