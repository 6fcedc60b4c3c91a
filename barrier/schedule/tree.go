package schedule

import "fmt"

// Tree returns the k-ary tree barrier with multicast release, k >= 2. In phase i the ranks that
// differ in base-k digit i alone, lower digits being 0, combine: k-1 notify, the lowest awaits.
// After ceil(log_k n) phases rank 0 has heard all and multicasts the release. This is the
// k-nomial tree (binomial for k=2), not a heap with k children.
//
// Without loss: n frames. Cost: (os + L + (k-1) or) ceil(log_k n) + os + L + or.
//
// Source: MCD §3.2.1 (k=2), §3.2.2 (k=3), §5.1.2 (k=4).
func Tree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("tree:%d", k), in: climb(k), out: multicast, releasesAll: true}
}

// BinaryTree is Tree(2).
//
// Source: MCD §3.2.1.
func BinaryTree() Algorithm { return Tree(2) }

// TernaryTree is Tree(3).
//
// Source: MCD §3.2.2.
func TernaryTree() Algorithm { return Tree(3) }

// TreeTree is Tree with a release that goes down the tree, for networks without multicast.
//
// Without loss: 2(n-1) frames. Cost: about twice the way up.
func TreeTree(k int) Algorithm {
	return Algorithm{name: fmt.Sprintf("treetree:%d", k), in: climb(k), out: descend(k)}
}

// climb notifies rank 0 along the tree.
func climb(k int) part {
	mustBeTree(k)
	return func(b *builder) {
		for phase, d := 0, 1; d < b.size; phase, d = phase+1, d*k {
			digit := b.rank / d % k
			if digit > 0 {
				b.notify(b.rank-digit*d, b.label+phase, digit-1)
				break
			}
			for child := b.rank + d; child < min(b.rank+k*d, b.size); child += d {
				b.await(child, b.label+phase)
			}
		}
		b.label += digits(b.size, k)
	}
}

// descend is climb backwards.
func descend(k int) part {
	mustBeTree(k)
	return func(b *builder) {
		phases := digits(b.size, k)
		for phase := phases - 1; phase >= 0; phase-- {
			d := power(k, phase)
			if b.rank%d > 0 {
				continue // the phase belongs to higher levels
			}
			if digit := b.rank / d % k; digit > 0 {
				b.await(b.rank-digit*d, b.label+phase)
				continue
			}
			for child := b.rank + d; child < min(b.rank+k*d, b.size); child += d {
				b.notify(child, b.label+phase, (child-b.rank)/d-1)
			}
		}
		b.label += phases
	}
}

func mustBeTree(k int) {
	if k < 2 {
		panic(fmt.Sprintf("schedule: a tree of %d branches (want 2 or more)", k))
	}
}

func power(k, e int) int {
	p := 1
	for range e {
		p *= k
	}
	return p
}
