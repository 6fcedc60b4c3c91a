package schedule

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// grouping is ranks in groups. Rank 0 is the lowest of group 0.
type grouping interface {
	of(rank int) (group, index int) // the group of a rank, and its place in that
	rank(group, index int) int
	size(group int) int
	largest() int // size of a group
	groups() int
}

// rows is so many ranks in groups of ranks that follow each other; the last may be smaller.
type rows struct{ ranks, group int }

func (r rows) of(rank int) (group, index int) { return rank / r.group, rank % r.group }
func (r rows) rank(group, index int) int      { return group*r.group + index }
func (r rows) size(group int) int             { return min(r.group, r.ranks-group*r.group) }
func (r rows) largest() int                   { return min(r.group, r.ranks) }
func (r rows) groups() int                    { return groups(r.ranks, r.group) }

// layout is groups of ranks, such as those of a host each: of any size, and of any ranks.
type layout struct {
	members [][]int // the ranks of each group, ascending; the groups by their lowest rank
	group   []int   // by rank: its group
	index   []int   // by rank: its place in that
	most    int     // size of a group
}

func (l *layout) of(rank int) (group, index int) { return l.group[rank], l.index[rank] }
func (l *layout) rank(group, index int) int      { return l.members[group][index] }
func (l *layout) size(group int) int             { return len(l.members[group]) }
func (l *layout) largest() int                   { return l.most }
func (l *layout) groups() int                    { return len(l.members) }

// newLayout makes a layout of groups that have all ranks between them.
func newLayout(groups [][]int) *layout {
	l := &layout{members: slices.Clone(groups)}
	slices.SortFunc(l.members, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	size := 0
	for _, ranks := range groups {
		size += len(ranks)
	}
	l.group, l.index = make([]int, size), make([]int, size)
	for g, ranks := range l.members {
		l.most = max(l.most, len(ranks))
		for i, rank := range ranks {
			l.group[rank], l.index[rank] = g, i
		}
	}
	return l
}

// digest tells layouts apart.
func (l *layout) digest() uint32 { return digest(l.group) }

// digest tells lists of numbers apart.
func digest(numbers []int) uint32 {
	sum := fnv.New32a()
	for _, n := range numbers {
		_, _ = sum.Write(binary.BigEndian.AppendUint16(nil, uint16(n))) // never fails
	}
	return sum.Sum32()
}

// division says how so many ranks are in groups.
type division func(ranks int) grouping

// inRows is groups of ranks that follow each other.
func inRows(group int) division { return func(ranks int) grouping { return rows{ranks, group} } }

// divide is always this layout, and for its ranks alone.
func (l *layout) divide(ranks int) grouping {
	if ranks != len(l.group) {
		panic(wrongf("groups of %d ranks for %d", len(l.group), ranks))
	}
	return l
}

// of returns the groups of the whole, and those of the ranks of b: the same, or of a subset.
func (d division) of(b *builder) (whole, present grouping) {
	if b.positions == nil {
		whole = d(b.size)
		return whole, whole
	}
	whole = d(b.span)
	members := make([][]int, whole.groups())
	for rank, position := range b.positions {
		group, _ := whole.of(position)
		members[group] = append(members[group], rank)
	}
	return whole, newLayout(slices.DeleteFunc(members, func(ranks []int) bool { return len(ranks) == 0 }))
}

// within runs p in each group.
func (d division) within(p part) part {
	return func(b *builder) {
		whole, present := d.of(b)
		group, index := present.of(b.rank)
		place := func(i int) int { return present.rank(group, i) }
		inGroup := func(position int) (index int) { _, index = whole.of(position); return index }
		label := b.label
		b.among(index, present.size(group), place,
			p.of(b.positionsOf(present.size(group), place, inGroup), whole.largest()))
		b.label = label
		b.skip(whole.largest(), p) // smaller groups may need fewer labels
	}
}

// leaders runs p among the lowest ranks of the groups.
func (d division) leaders(p part) part {
	return func(b *builder) {
		whole, present := d.of(b)
		group, index := present.of(b.rank)
		place := func(i int) int { return present.rank(i, 0) }
		groupOf := func(position int) (group int) { group, _ = whole.of(position); return group }
		label := b.label
		if index == 0 {
			b.among(group, present.groups(), place,
				p.of(b.positionsOf(present.groups(), place, groupOf), whole.groups()))
		}
		b.label = label
		b.skip(whole.groups(), p) // fewer groups may need fewer labels
	}
}
