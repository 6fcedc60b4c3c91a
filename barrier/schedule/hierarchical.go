package schedule

import "fmt"

// Hierarchical returns a barrier in levels. Ranks are in groups of the given size, group 0 being
// ranks 0 to group-1 and so on, and the lowest rank of a group leads it. The inner algorithm's
// first half runs within each group, then the outer algorithm among the leaders, then the inner
// one's second half. If the outer algorithm ends in a multicast, that releases all ranks,
// and no second half follows. Both algorithms may be hierarchies themselves.
//
// The source has full inner barriers in place of the halves: see HierarchicalRepeated. Some of the
// ranks, as under a mask, stay in their groups: see Subset.
//
// Source: SCMD §4.
func Hierarchical(inner, outer Algorithm, group int) Algorithm {
	mustBeGroup(group)
	a := hierarchical(fmt.Sprintf("hier:%d:%v:%v", group, inner, outer), inner, outer, inRows(group))
	a.choose = chooseLevels(Hierarchical, inner, outer, group)
	return a
}

// chooseLevels returns what chooses a hierarchy for a size, if a level of it is Auto, or has one:
// of the algorithms that this chooses, so that their names tell members of other costs apart. A
// last group that is smaller has the one of the others. It is nil if nothing is to be chosen.
func chooseLevels(of func(inner, outer Algorithm, group int) Algorithm, inner, outer Algorithm, group int) (
	choose func(size int) Algorithm,
) {
	if inner.choose == nil && outer.choose == nil {
		return nil
	}
	return func(size int) Algorithm {
		return of(inner.For(min(group, size)), outer.For(groups(size, group)), group)
	}
}

// groups returns how many groups there are.
func groups(size, group int) int { return (size + group - 1) / group }

// hierarchical is Hierarchical with groups of any kind.
func hierarchical(name string, inner, outer Algorithm, d division) Algorithm {
	innerIn, innerOut := inner.halves()
	a := Algorithm{name: name, levels: true}
	switch {
	case outer.releasesAll:
		a.in, a.out, a.releasesAll = sequence(d.within(innerIn), d.leaders(outer.in)), outer.out, true
	case outer.out == nil:
		a.in = sequence(d.within(innerIn), d.leaders(outer.in), d.within(innerOut))
	default:
		a.in = sequence(d.within(innerIn), d.leaders(outer.in))
		a.out = sequence(d.leaders(outer.out), d.within(innerOut))
	}
	return a
}

// HierarchicalRepeated is Hierarchical with a full inner barrier before that of the leaders and
// another one after it, as the source has them.
//
// Source: SCMD §4.
func HierarchicalRepeated(inner, outer Algorithm, group int) Algorithm {
	mustBeGroup(group)
	d := inRows(group)
	full := d.within(inner.all())
	return Algorithm{
		name:   fmt.Sprintf("repeated:%d:%v:%v", group, inner, outer),
		in:     sequence(full, d.leaders(outer.all()), full),
		levels: true,
		choose: chooseLevels(HierarchicalRepeated, inner, outer, group),
	}
}

func mustBeGroup(group int) {
	if group < 2 {
		panic(fmt.Sprintf("schedule: groups of %d (want 2 or more)", group))
	}
}

// sequence runs parts one after the other.
func sequence(parts ...part) part {
	return func(b *builder) {
		for _, p := range parts {
			p(b)
		}
	}
}
