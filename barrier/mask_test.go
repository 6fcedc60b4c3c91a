package barrier

import "testing"

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

// The multicast group of a set is the four parts of its hash in one, as on every node of any version.
func TestFold(t *testing.T) {
	if g := fold(0x0001_0020_0300_4000); g != 0x4321 {
		t.Errorf("%x, want 4321", g)
	}
}
