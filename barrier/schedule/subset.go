package schedule

import (
	"fmt"
	"slices"
)

// Subset returns the algorithm that a is for some ranks of a group of that size, given in ascending
// order: rank i of the subset is the group's ranks[i]. Each of the group's members gives the same.
//
// An algorithm in levels (Hierarchical, HierarchicalRepeated, Chassis, ChassisRepeated and what is
// made of them) keeps the whole group's levels: ranks that share a group of it, such as those of a
// chassis, still do, the lowest of them leads it, and a group without a rank is left out. So no
// more groups exchange messages than in the whole. Its name has a digest of the ranks, and Parse
// does not know it. All other algorithms know of no groups, and are For(len(ranks)).
//
// Source: SCMD §3.5 (barrier mask) within §4.
func (a Algorithm) Subset(size int, ranks []int) Algorithm {
	if !a.levels {
		return a.For(len(ranks))
	}
	whole := a.For(size)
	if len(ranks) == size {
		return whole
	}
	ranks = slices.Clone(ranks)
	whole.name = fmt.Sprintf("subset:%08x:%s", digest(ranks), whole.name)
	whole.in, whole.out = whole.in.of(ranks, size), whole.out.of(ranks, size)
	return whole
}

// of returns p for ranks at those positions in a whole of that size: all of it if they are nil.
func (p part) of(positions []int, size int) part {
	if p == nil || positions == nil {
		return p
	}
	return func(b *builder) {
		before, span := b.positions, b.span
		b.positions, b.span = positions, size
		if before != nil { // a subset of these
			b.positions = make([]int, len(before))
			for i, at := range before {
				b.positions[i] = positions[at]
			}
		}
		if len(b.positions) != b.size || before != nil && span != len(positions) {
			panic(wrongf("a subset of %d ranks for %d", len(positions), b.size))
		}
		p(b)
		b.positions, b.span = before, span
	}
}

// positionsOf returns the positions of a part's ranks, of those of b: nil, if b is for all.
func (b *builder) positionsOf(size int, place, position func(int) int) []int {
	if b.positions == nil {
		return nil
	}
	all := make([]int, size)
	for r := range all {
		all[r] = position(b.positions[place(r)])
	}
	return all
}
