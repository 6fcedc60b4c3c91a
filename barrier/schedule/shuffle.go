package schedule

// Shuffle returns the shuffle exchange (also butterfly): in phase i, ranks that differ in bit i
// alone notify each other. If size is no power of two it is the dissemination barrier: in phase
// i, rank r notifies r + 2^i and awaits r - 2^i, modulo size. After ceil(log2 n) phases each rank
// has heard of all others.
//
// Without loss: n ceil(log2 n) frames, no multicast. Cost: (os + L + or) ceil(log2 n).
//
// Source: MCD §3.1.1, §5.1.2.
func Shuffle() Algorithm { return Algorithm{name: "shuffle", in: shuffle} }

func shuffle(b *builder) {
	for phase, d := 0, 1; d < b.size; phase, d = phase+1, 2*d {
		to, from := (b.rank+d)%b.size, (b.rank-d+b.size)%b.size
		if powerOfTwo(b.size) {
			to, from = b.rank^d, b.rank^d
		}
		b.notify(to, b.label+phase, phase)
		b.await(from, b.label+phase)
	}
	b.label += digits(b.size, 2)
}

func powerOfTwo(n int) bool { return n&(n-1) == 0 }

// digits returns how many digits to base k distinguish n ranks: ceil(log_k n).
func digits(n, k int) (phases int) {
	for d := 1; d < n; d *= k {
		phases++
	}
	return phases
}
