package schedule

// Concurrent returns the flat barrier: all ranks notify rank 0, which multicasts the release.
//
// Without loss: n frames. Cost: os + L + (n-1) or + os + L + or. It is the best if the ranks
// enter at different times or share processors, and the worst if many enter together.
//
// Source: MCD §3.2.3.
func Concurrent() Algorithm {
	return Algorithm{name: "concurrent", in: flat.up, out: multicast, releasesAll: true}
}

// Star is Concurrent with a release to one rank after the other, for networks without multicast.
// It is SCMD's barrier within a chassis, with rank 0 as the Center.
//
// Without loss: 2(n-1) frames.
//
// Source: SCMD §3.
func Star() Algorithm { return Algorithm{name: "star", in: flat.up, out: flat.down} }

// Offload is Concurrent for a rank 0, the Center, that may have a unit in its NIC's path which
// counts the arrivals and releases the others without it (package barrier/offload). The other ranks
// cannot tell whether it has one: without, it counts and releases by itself.
//
// Without loss: n frames.
//
// Source: SCMD §3.
func Offload() Algorithm {
	a := Concurrent()
	a.name = "offload"
	return a
}

// flat is the tree of one phase.
var flat tree = func(rank, size int) place {
	p := nomial(max(size, 2))(rank, size)
	p.phases = 1 // also of one rank
	return p
}

// multicast has rank 0 notify all others at once. In a part for some of the ranks it notifies one
// after the other, as a multicast would reach the others too.
func multicast(b *builder) {
	switch {
	case b.place != nil:
		flat.down(b)
		return
	case b.rank > 0:
		b.await(0, b.label)
	case b.size > 1:
		for nic := range b.releases {
			b.notifyVia(nic, All, b.label)
		}
	}
	b.label++
}
