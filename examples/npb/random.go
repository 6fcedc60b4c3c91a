package npb

// Random makes NPB's random numbers: x' = 5^13 x mod 2^46, from 0 to 1. Each rank can begin where
// its part of the sequence does.
type Random struct{ x uint64 }

// Seed is that of all benchmarks but EP.
const Seed = 314159265

const (
	multiplier = 1220703125 // 5^13
	modulus    = 1 << 46
)

// NewRandom returns the sequence at its beginning: behind the seed, which is odd.
func NewRandom(seed uint64) *Random { return &Random{seed} }

// Float64 returns the next number.
func (r *Random) Float64() float64 {
	r.x = r.x * multiplier % modulus
	return float64(r.x) / modulus
}

// Skip passes over n numbers, in log n steps.
func (r *Random) Skip(n uint64) {
	for power := uint64(multiplier); n > 0; n /= 2 { // power is the multiplier to the 1, 2, 4 ...
		if n%2 == 1 {
			r.x = r.x * power % modulus
		}
		power = power * power % modulus
	}
}
