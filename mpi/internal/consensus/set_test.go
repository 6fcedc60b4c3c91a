package consensus

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/internal/prng"
)

func (s Set) equal(t Set) bool { return bytes.Equal(s, t) }

// ranks is a naive set.
type ranks [30]bool

func (n *ranks) set() (s Set) {
	for k, in := range n {
		if in {
			s = s.With(k)
		}
	}
	return s
}

// check compares a set with its naive twin. The last byte is not 0: equal sets have equal bytes.
func (n *ranks) check(t *testing.T, what string, s Set) {
	t.Helper()
	for k := range 2 * len(n) {
		if in := k < len(n) && n[k]; s.Has(k) != in {
			t.Fatalf("%s: has %d is %t: %v, want %v", what, k, !in, s, n)
		}
	}
	if len(s) > 0 && s[len(s)-1] == 0 || !s.equal(n.set()) {
		t.Fatalf("%s: %v, want %v", what, []byte(s), []byte(n.set()))
	}
}

// Sets of several bytes agree with naive ones, and making one changes no other one.
func TestSet_AgreesWithNaive(t *testing.T) {
	random := prng.Source(1)
	for range 2000 {
		var a, b, union, minus ranks
		below := 1 + random.Below(len(a)) // also short ones with long ones
		for k := range a {
			a[k], b[k] = random.Hits(.2), k < below && random.Hits(.3)
			union[k], minus[k] = a[k] || b[k], a[k] && !b[k]
		}
		s, u := a.set(), b.set()
		union.check(t, "union", s.Union(u))
		union.check(t, "union", u.Union(s))
		minus.check(t, "minus", s.Minus(u))
		for k := range a {
			minus[k] = b[k] && !a[k]
		}
		minus.check(t, "minus", u.Minus(s))
		a.check(t, "the first", s)
		b.check(t, "the second", u)
		if s.equal(u) != (a == b) {
			t.Fatalf("%v and %v are equal: %t", a, b, s.equal(u))
		}
	}
}

// A set of a communicator has none but its ranks, and is in its shortest form.
func TestSet_Valid(t *testing.T) {
	for size := 1; size <= 25; size++ {
		if !Set(nil).Valid(size) {
			t.Errorf("size %d: the empty set is not valid", size)
		}
		for rank := range 40 {
			s := set(rank)
			if s.Valid(size) != (rank < size) {
				t.Errorf("size %d: {%d} is valid: %t", size, rank, s.Valid(size))
			}
			if append(s, 0).Valid(size) || append(Set{}, make(Set, rank/8+1)...).Valid(size) {
				t.Errorf("size %d: a set with a zero byte at its end is valid", size)
			}
		}
	}
}
