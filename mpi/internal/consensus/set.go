package consensus

import "bytes"

// Set is a set of ranks: one bit for each, that of rank 0 lowest in the first byte. The last byte
// is not 0, so that equal sets have equal bytes. Sets are not changed once they are made.
type Set []byte

// Has reports whether a rank is in the set.
func (s Set) Has(rank int) bool { return rank/8 < len(s) && s[rank/8]&(1<<(rank%8)) != 0 }

// With returns the set with one more rank.
func (s Set) With(rank int) Set {
	grown := make(Set, max(len(s), rank/8+1))
	copy(grown, s)
	grown[rank/8] |= 1 << (rank % 8)
	return grown
}

// Union returns what is in one of two sets.
func (s Set) Union(t Set) Set {
	if len(s) < len(t) {
		s, t = t, s
	}
	u := Set(bytes.Clone(s))
	for k, b := range t {
		u[k] |= b
	}
	return u
}

// Minus returns what is in s and not in t.
func (s Set) Minus(t Set) Set {
	u := Set(bytes.Clone(s))
	for k := range u[:min(len(s), len(t))] {
		u[k] &^= t[k]
	}
	return u.trim()
}

// Valid reports whether the set is one of ranks below size.
func (s Set) Valid(size int) bool {
	if len(s) == 0 {
		return true
	}
	last := s[len(s)-1]
	return last != 0 && len(s) <= (size+7)/8 && (len(s)*8 <= size || last>>(size%8) == 0)
}

func (s Set) trim() Set {
	for len(s) > 0 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	return s
}
