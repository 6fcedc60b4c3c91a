// Package prng is a random generator for results that must be the same for ever: simulations, and
// searches that try changes in random order.
package prng

import (
	"math/bits"
	"time"
)

// Source is a random generator of one word, its seed. It is fast, and gives the same numbers on
// every machine and in every release of Go.
//
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014,
// figure 16 (SplitMix64).
type Source uint64

// Next returns 64 random bits.
func (s *Source) Next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Below returns a number from 0 to n-1, each as likely.
func (s *Source) Below(n int) int { return int(s.below(uint64(n))) }

func (s *Source) below(n uint64) uint64 {
	high, _ := bits.Mul64(s.Next(), n)
	return high
}

// Shuffle puts numbers into a random order, each order as likely.
func (s *Source) Shuffle(numbers []int) {
	for i := len(numbers) - 1; i > 0; i-- {
		j := s.Below(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
}

// Hits is true with probability p. For p <= 0 and p >= 1 it draws no number.
func (s *Source) Hits(p float64) bool {
	if p <= 0 || p >= 1 {
		return p >= 1
	}
	return float64(s.Next()>>11) < p*(1<<53)
}

// UpTo returns a duration from 1 ns to d, each as likely. UpTo(0) is 1 ns.
func (s *Source) UpTo(d time.Duration) time.Duration { return time.Duration(s.below(uint64(d))) + 1 }
