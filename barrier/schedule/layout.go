package schedule

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// layout is groups of ranks, such as those of a host each: of any size, and of any ranks.
type layout struct {
	groups  [][]int // the ranks of each, ascending; the groups by their lowest rank
	leaders []int   // these
	group   []int   // by rank: its group
	index   []int   // by rank: its place in that
	largest int     // size of a group
}

// newLayout makes a layout of groups that have all ranks between them.
func newLayout(groups [][]int) *layout {
	l := &layout{groups: slices.Clone(groups)}
	slices.SortFunc(l.groups, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	size := 0
	for _, ranks := range groups {
		size += len(ranks)
	}
	l.group, l.index = make([]int, size), make([]int, size)
	for g, ranks := range l.groups {
		l.leaders = append(l.leaders, ranks[0])
		l.largest = max(l.largest, len(ranks))
		for i, rank := range ranks {
			l.group[rank], l.index[rank] = g, i
		}
	}
	return l
}

// digest tells layouts apart.
func (l *layout) digest() uint32 {
	sum := fnv.New32a()
	for _, g := range l.group {
		_, _ = sum.Write(binary.BigEndian.AppendUint16(nil, uint16(g))) // never fails
	}
	return sum.Sum32()
}

// hierarchical is Hierarchical with these groups.
func (l *layout) hierarchical(name string, inner, outer Algorithm) Algorithm {
	return hierarchical(name, inner, outer, l.within, l.amongLeaders)
}

// within runs p in each group.
func (l *layout) within(p part) part {
	return func(b *builder) {
		ranks := l.groups[l.group[b.rank]]
		label := b.label
		b.among(l.index[b.rank], len(ranks), func(r int) int { return ranks[r] }, p)
		b.label = label
		b.skip(l.largest, p) // smaller groups may need fewer labels
	}
}

// amongLeaders runs p among the lowest ranks of the groups.
func (l *layout) amongLeaders(p part) part {
	return func(b *builder) {
		if l.index[b.rank] != 0 {
			b.skip(len(l.leaders), p)
			return
		}
		b.among(l.group[b.rank], len(l.leaders), func(r int) int { return l.leaders[r] }, p)
	}
}
