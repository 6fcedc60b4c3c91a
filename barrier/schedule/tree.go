package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// Tree returns the k-ary tree barrier with multicast release, k >= 2. In phase i the ranks that
// differ in base-k digit i alone, lower digits being 0, combine: k-1 notify, the lowest awaits.
// After ceil(log_k n) phases rank 0 has heard all and multicasts the release. This is the
// k-nomial tree (binomial for k=2), not a heap with k children.
//
// Without loss: n frames. Cost: (os + L + (k-1) or) ceil(log_k n) + os + L + or.
//
// Source: MCD §3.2.1 (k=2), §3.2.2 (k=3), §5.1.2 (k=4).
func Tree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("tree:%d", k), in: nomial(k).up, out: multicast, releasesAll: true}
}

// TreeTree is Tree with a release that goes down the tree, for networks without multicast.
//
// Without loss: 2(n-1) frames. Cost: about twice the way up.
func TreeTree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("treetree:%d", k), in: nomial(k).up, out: nomial(k).down}
}

// tree returns a rank's place in a tree with rank 0 at its root.
type tree func(rank, size int) place

// place is the links of one rank of a tree.
type place struct {
	above  []link // one, or none at the root
	below  []link // by phase
	phases int    // of the whole tree
}

// link is to another rank. Each phase of the tree has a label.
type link struct{ rank, phase, spread int }

// up notifies rank 0: each rank awaits those below it, and then notifies the one above.
func (t tree) up(b *builder) {
	p := t(b.rank, b.size)
	for _, l := range p.below {
		b.await(l.rank, b.label+l.phase)
	}
	for _, l := range p.above {
		b.notify(l.rank, b.label+l.phase, l.spread)
	}
	b.label += p.phases
}

// down has rank 0 notify all: up backwards, the last phase first.
func (t tree) down(b *builder) {
	p := t(b.rank, b.size)
	for _, l := range p.above {
		b.await(l.rank, b.label+l.phase)
	}
	slices.SortStableFunc(p.below, func(x, y link) int { return cmp.Compare(y.phase, x.phase) })
	for _, l := range p.below {
		b.notify(l.rank, b.label+l.phase, l.spread)
	}
	b.label += p.phases
}

// nomial is the k-nomial tree.
func nomial(k int) tree {
	if k < 2 {
		panic(fmt.Sprintf("schedule: a tree of %d branches (want 2 or more)", k))
	}
	return func(rank, size int) place {
		p := place{phases: digits(size, k)}
		for phase, d := 0, 1; d < size; phase, d = phase+1, d*k {
			if digit := rank / d % k; digit > 0 {
				p.above = []link{{rank - digit*d, phase, digit - 1}}
				break
			}
			for child := rank + d; child < min(rank+k*d, size); child += d {
				p.below = append(p.below, link{child, phase, (child-rank)/d - 1})
			}
		}
		return p
	}
}
