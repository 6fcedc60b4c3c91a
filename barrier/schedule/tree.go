package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// Tree returns the k-ary tree barrier with multicast release, k >= 2. In phase i the ranks that
// differ in base-k digit i alone, lower digits being 0, combine: k-1 notify, the lowest awaits.
// After ceil(log_k n) phases rank 0 has heard all and multicasts the release. This is the
// k-nomial tree (binomial for k=2), and not the Heap with k children.
//
// Without loss: n frames. Cost at powers of k: (os + L + (k-1) or) log_k n + os + L + or, if gap is
// or at most; a gap above that, up to os + L + or, counts in place of k-2 of a phase's k-1 or.
// Between powers of k it is that of the next one at most.
//
// Source: MCD §3.2.1 (k=2), §3.2.2 (k=3, by its log_3 n phases: see Heap), §5.1.2 (k=4).
func Tree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("tree:%d", k), in: nomial(k).up, out: multicast, releasesAll: true}
}

// TreeTree is Tree with a release that goes down the tree, for networks without multicast.
//
// Without loss: 2(n-1) frames. Cost: about twice the way up.
func TreeTree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("treetree:%d", k), in: nomial(k).up, out: nomial(k).down}
}

// Heap returns the barrier over a complete tree with k children at each rank, k >= 2: rank r awaits
// ranks kr+1 to kr+k, and then notifies the one above it. Rank 0 multicasts the release. What takes
// Tree one phase for k-1 children of each rank takes Heap a level of k. With k=2 it is the 3-ary
// tree of the source if "two children" is of each rank, as its sizes of 15 and 31 suggest; with
// log_3 n phases, as it says too, that is Tree(3).
//
// Without loss: n frames. Cost, of trees whose levels are full, if gap is or at most: (os + L +
// k or) for each level below rank 0, and os + L + or.
//
// Source: MCD §3.2.2 (k=2).
func Heap(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("heap:%d", k), in: heap(k).up, out: multicast, releasesAll: true}
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
	mustBranch(k)
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

// heap is the complete tree of k children: rank r has ranks kr+1 to kr+k below it.
func heap(k int) tree {
	mustBranch(k)
	return func(rank, size int) place {
		p := place{phases: 1}
		if rank > 0 {
			p.above = []link{{rank: (rank - 1) / k, spread: (rank - 1) % k}}
		}
		for child := k*rank + 1; child < min(k*rank+k+1, size); child++ {
			p.below = append(p.below, link{rank: child, spread: (child - 1) % k})
		}
		return p
	}
}

func mustBranch(k int) {
	if k < 2 {
		panic(fmt.Sprintf("schedule: a tree of %d branches (want 2 or more)", k))
	}
}
