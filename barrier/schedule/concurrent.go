package schedule

// Concurrent returns the flat barrier: all ranks notify rank 0, which multicasts the release.
//
// Without loss: n frames. Cost: os + L + (n-1) or + os + L + or. It is the best if the ranks
// enter at different times or share processors, and the worst if many enter together.
//
// Source: MCD §3.2.3.
func Concurrent() Algorithm {
	return Algorithm{name: "concurrent", in: gather, out: multicast, releasesAll: true}
}

// Star is Concurrent with a release to one rank after the other, for networks without multicast.
// It is SCMD's barrier within a chassis, with rank 0 as the Center.
//
// Without loss: 2(n-1) frames.
//
// Source: SCMD §3.
func Star() Algorithm { return Algorithm{name: "star", in: gather, out: notifyEach} }

// gather notifies rank 0.
func gather(b *builder) {
	if b.rank > 0 {
		b.notify(0, b.label, b.rank-1)
	} else {
		for r := 1; r < b.size; r++ {
			b.await(r, b.label)
		}
	}
	b.label++
}

// multicast has rank 0 notify all others at once.
func multicast(b *builder) {
	if b.rank == 0 {
		b.notifyAll(b.label)
	} else {
		b.await(0, b.label)
	}
	b.label++
}

// notifyEach has rank 0 notify one after the other.
func notifyEach(b *builder) {
	if b.rank > 0 {
		b.await(0, b.label)
	} else {
		for r := 1; r < b.size; r++ {
			b.notify(r, b.label, r-1)
		}
	}
	b.label++
}
