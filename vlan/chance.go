package vlan

import "math/bits"

// chance is a random generator of one word: the same numbers from the same seed, on every machine and in every release of
// Go. (SplitMix64: Steele, Lea, Flood, OOPSLA 2014, figure 16.)
type chance uint64

func (c *chance) next() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number of 0 to n-1.
func (c *chance) below(n int) int {
	high, _ := bits.Mul64(c.next(), uint64(n))
	return int(high)
}

// shuffle brings numbers into a random order, each as likely.
func (c *chance) shuffle(numbers []int) {
	for i := len(numbers) - 1; i > 0; i-- {
		j := c.below(i + 1)
		numbers[i], numbers[j] = numbers[j], numbers[i]
	}
}
