package barrier

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/mcd"
)

// Mask is a set of nodes. The zero Mask is empty, and stands for all where it is not given.
//
// Source: SCMD §3 (barrier mask).
type Mask struct{ words []uint64 }

// MaskOf returns the mask of some nodes.
func MaskOf(nodes ...mcd.NodeID) (m Mask) {
	for _, n := range nodes {
		m.add(n)
	}
	return m
}

// Bits returns the mask of the bits that are set, as the barrier hardware of SCMD §3 takes it:
// bit i of word w is node 64 w + i.
func Bits(words ...uint64) Mask {
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return Mask{slices.Clone(words)}
}

func (m *Mask) add(n mcd.NodeID) {
	for len(m.words) <= int(n)/64 {
		m.words = append(m.words, 0)
	}
	m.words[n/64] |= 1 << (n % 64)
}

// Has reports whether a node is in m.
func (m Mask) Has(n mcd.NodeID) bool {
	return int(n)/64 < len(m.words) && m.words[n/64]&(1<<(n%64)) != 0
}

// Len returns how many nodes are in m.
func (m Mask) Len() (n int) {
	for _, w := range m.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// IsZero reports whether m is empty.
func (m Mask) IsZero() bool { return m.Len() == 0 }

// Nodes returns the nodes in m, ascending.
func (m Mask) Nodes() []mcd.NodeID {
	all := make([]mcd.NodeID, 0, m.Len())
	for i, w := range m.words {
		for ; w != 0; w &= w - 1 {
			all = append(all, mcd.NodeID(64*i+bits.TrailingZeros64(w)))
		}
	}
	return all
}

// String formats m as "{0 3 5}".
func (m Mask) String() string {
	return "{" + strings.Trim(fmt.Sprint(m.Nodes()), "[]") + "}"
}

func (m Mask) equal(other Mask) bool { return slices.Equal(m.words, other.words) }

// outside returns the lowest number in m that is not in other, if there is one.
func (m Mask) outside(other Mask) (n int, is bool) {
	for i, w := range m.words {
		if i < len(other.words) {
			w &^= other.words[i]
		}
		if w != 0 {
			return 64*i + bits.TrailingZeros64(w), true
		}
	}
	return 0, false
}
