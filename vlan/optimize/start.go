package optimize

import (
	"math"
	"slices"
)

// farther is how many times as fast links seem that are farther from the hosts than a view reaches:
// they do not hold anything back, but of equal paths the one with less load there is better.
const farther = 16

// maxViews bounds the views of a problem: fat trees have few levels, but the paths of a ring are
// half as long as it is.
const maxViews = 8

// begin returns the search at the best of its starting plans, each improved: the current plan; and,
// as long as the bound is not reached, the current plan and the largest pairs first, improved view
// by view. If the number of changes is limited, it is the current plan.
func (p *problem) begin(effort int) *search {
	best := p.newSearch(effort)
	best.fromCurrent()
	best.improve()
	if p.most < math.MaxInt || best.atBound() {
		return best
	}
	views := p.views()
	starts := []func(*assignment){(*assignment).fromCurrent, (*assignment).chooseLargestFirst}
	if len(views) == 1 {
		starts = starts[1:] // the first would be what it was
	}
	for _, start := range starts {
		s := p.newSearch(effort)
		s.tried = best.tried
		start(s.assignment)
		for _, s.problem = range views {
			s.improve()
		}
		if p.better(s.score(), best.score()) {
			best = s
		}
		if best.tried = s.tried; best.atBound() {
			break
		}
	}
	return best
}

// atBound reports whether the worst link is as low as it can be, nearly.
func (s *search) atBound() bool { return s.score().worst <= s.bound*(1+near) }

func (p *problem) newSearch(effort int) *search {
	return &search{assignment: p.newAssignment(), effort: effort, inChain: make([]bool, len(p.pairs))}
}

// views returns the problem as the hosts see it: with the links at the ends of paths alone, then
// with those behind them as well, and so on; the last is p. There are maxViews at most. In a fat
// tree of several levels a pair that leaves a full link to the top can seldom find room both there
// and at the leaves. When the leaves' links are balanced, it need not leave the one that it has.
func (p *problem) views() (views []*problem) {
	level := slices.Repeat([]int{math.MaxInt}, len(p.topology.Links)) // links between it and the hosts
	highest := 0
	for i := range p.pairs {
		for _, path := range p.pairs[i].paths {
			for k, h := range path {
				level[h/2] = min(level[h/2], k, len(path)-1-k)
			}
		}
	}
	for _, l := range level {
		if l < math.MaxInt {
			highest = max(highest, l)
		}
	}
	for reach := range min(highest, maxViews-1) {
		view := *p
		view.inverse = slices.Clone(p.inverse)
		for h := range view.inverse {
			if level[h/2] > reach {
				view.inverse[h] /= farther
			}
		}
		views = append(views, &view)
	}
	return append(views, p)
}

// fromCurrent chooses as the current plan does, and as chooseLargestFirst for pairs without a path.
func (a *assignment) fromCurrent() {
	a.takeCurrent()
	a.chooseLargestFirst()
}

// chooseLargestFirst gives pairs without a choice the one where cost grows least, the largest pair
// first.
func (a *assignment) chooseLargestFirst() {
	var open []int
	for i, c := range a.choice {
		if c == noChoice {
			open = append(open, i)
		}
	}
	for _, i := range a.largestFirst(open) {
		c, _ := a.cheapest(i, math.Inf(1))
		a.take(i, c)
	}
}
