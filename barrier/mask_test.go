package barrier

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// A mask of bits has the nodes that are set, and none where none is.
func TestBits(t *testing.T) {
	for want, words := range map[string][]uint64{"{}": {0, 0}, "{0}": {1}, "{1 64}": {2, 1, 0}, "{127}": {0, 1 << 63}} {
		if m := Bits(words...); m.String() != want || m.IsZero() != (want == "{}") {
			t.Errorf("%v of %x, want %s", m, words, want)
		}
	}
	if m := Bits(); !m.IsZero() || !m.equal(Bits(0)) || !m.equal(Mask{}) {
		t.Errorf("%v of no words", m)
	}
}

// A mask has the nodes that it is made of, in any order and also twice, and no others. It is the one of
// the same bits.
func TestMaskOf(t *testing.T) {
	for _, nodes := range [][]mcd.NodeID{{}, {0}, {1}, {63}, {64}, {1, 0, 1}, {2, 63, 65}, {130, 64, 5}, {127, 128, 3, 191}} {
		m, sorted, words := MaskOf(nodes...), slices.Compact(slices.Sorted(slices.Values(nodes))), make([]uint64, 5)
		for n := range mcd.NodeID(len(words) * 64) {
			if m.Has(n) != slices.Contains(nodes, n) {
				t.Errorf("mask of %v: Has(%d) is %v", nodes, n, m.Has(n))
			}
		}
		for _, n := range nodes {
			words[n/64] |= 1 << (n % 64)
		}
		if m.Len() != len(sorted) || !slices.Equal(m.Nodes(), sorted) || m.String() != "{"+strings.Trim(fmt.Sprint(sorted), "[]")+"}" {
			t.Errorf("mask of %v: %d nodes %v", nodes, m.Len(), m)
		}
		if same := Bits(words...); !m.equal(same) || !same.equal(m) {
			t.Errorf("mask of %v: it is not that of the bits %x", nodes, words)
		}
	}
}

// The lowest node of a mask that is not in another one is named, whichever of the two is longer.
func TestMask_Outside(t *testing.T) {
	for _, c := range []struct {
		m, other []mcd.NodeID
		n        int
		is       bool
	}{
		{[]mcd.NodeID{1, 70}, []mcd.NodeID{70, 1, 200}, 0, false},
		{[]mcd.NodeID{1, 2, 70}, []mcd.NodeID{1, 70}, 2, true},
		{[]mcd.NodeID{1, 127, 190}, []mcd.NodeID{1, 200}, 127, true},
		{[]mcd.NodeID{1, 128}, []mcd.NodeID{0, 1}, 128, true},
		{nil, nil, 0, false},
	} {
		if n, is := MaskOf(c.m...).outside(MaskOf(c.other...)); n != c.n || is != c.is {
			t.Errorf("%v outside of %v: %d, %v; want %d, %v", c.m, c.other, n, is, c.n, c.is)
		}
	}
}

// The multicast group of a set is the four parts of its hash in one, as on every node of any version.
func TestFold(t *testing.T) {
	if g := fold(0x0001_0020_0300_4000); g != 0x4321 {
		t.Errorf("%x, want 4321", g)
	}
}
