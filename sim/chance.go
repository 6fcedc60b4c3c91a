package sim

import (
	"math/bits"
	"time"
)

// splitMix is a random generator of one word: fast, and the same on every machine and in every release of Go.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 16.
type splitMix uint64

func (s *splitMix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hits is true with probability p. Where nothing is left to chance, it draws nothing.
func (s *splitMix) hits(p float64) bool {
	if p <= 0 || p >= 1 {
		return p >= 1
	}
	return float64(s.next()>>11) < p*(1<<53)
}

// upTo returns a duration from 1 ns to d, all as likely.
func (s *splitMix) upTo(d time.Duration) time.Duration {
	high, _ := bits.Mul64(s.next(), uint64(d))
	return time.Duration(high) + 1
}
