package sim

import (
	"math/bits"
	"time"
)

// Chance is a random generator of one word, its seed: fast, and the same on every machine and in every release of Go.
//
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, figure 16.
type Chance uint64

func (c *Chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Hits is true with probability p. Where nothing is left to chance, it draws nothing.
func (c *Chance) Hits(p float64) bool {
	if p <= 0 || p >= 1 {
		return p >= 1
	}
	return float64(c.next()>>11) < p*(1<<53)
}

// UpTo returns a duration from 1 ns to d, all as likely. A d of 0 returns 1 ns.
func (c *Chance) UpTo(d time.Duration) time.Duration {
	high, _ := bits.Mul64(c.next(), uint64(d))
	return time.Duration(high) + 1
}
