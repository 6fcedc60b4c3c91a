package schedule

import "fmt"

// Stripe returns a over several networks, on each of which every rank has a NIC. Messages that
// one rank receives at one time, such as those of its children in a tree, come over different
// networks. A multicast release goes over the first one.
//
// Source: MCD §3.3.1 (tree), §3.3.2 (concurrent).
func Stripe(a Algorithm, nics int) Algorithm { return overNetworks(a, nics, "stripe", 1) }

// Redundant is Stripe with the multicast release on every network, so that the loss of one copy
// costs nothing.
func Redundant(a Algorithm, nics int) Algorithm { return overNetworks(a, nics, "redundant", nics) }

func overNetworks(a Algorithm, nics int, name string, releases int) Algorithm {
	if nics < 1 || nics > MaxNICs {
		panic(fmt.Sprintf("schedule: %d networks (want 1 to %d)", nics, MaxNICs))
	}
	if choose := a.choose; choose != nil {
		a.choose = func(size int) Algorithm { return overNetworks(choose(size), nics, name, releases) }
	}
	spread := func(p part) part {
		if p == nil {
			return nil
		}
		return func(b *builder) {
			b.nics, b.releases = nics, releases
			p(b)
		}
	}
	a.name = fmt.Sprintf("%s:%d:%s", name, nics, a.name)
	a.in, a.out = spread(a.in), spread(a.out)
	return a
}

// MaxNICs bounds Stripe: no cluster is cabled with so many networks.
const MaxNICs = 64
