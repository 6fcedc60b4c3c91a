package optimize

import (
	"cmp"
	"math"
	"slices"
)

// exact finds the best choices by branch and bound, from known ones on, with at most that effort.
// It reports whether the search is complete, so that there are none better, and how many paths it
// has tried.
//
// Pairs choose one after the other, the largest first. Loads only grow, and the cost of a pair
// grows with the loads that it finds. So what each remaining pair would add now, by itself, is the
// least that it will add.
func (p *problem) exact(known []int32, effort int) (best []int32, proved bool, tried int) {
	e := exactSearch{assignment: p.newAssignment(), best: slices.Clone(known), effort: effort}
	e.takeAll(known)
	e.known = e.score()
	if e.known.changed > p.most {
		e.known = score{worst: math.Inf(1), squares: math.Inf(1)}
	}
	for i := range known {
		e.take(i, noChoice)
		e.order = append(e.order, i)
	}
	e.order = p.largestFirst(e.order)
	e.branch(0)
	return e.best, e.tried < e.effort, e.tried
}

type exactSearch struct {
	*assignment
	order  []int
	best   []int32
	known  score // of best
	effort int
}

// branch tries all choices of the pairs from order[n] on.
func (e *exactSearch) branch(n int) {
	if e.tried >= e.effort {
		return
	}
	if n == len(e.order) {
		if found := e.score(); e.better(found, e.known) {
			e.best, e.known = slices.Clone(e.choice), found
		}
		return
	}
	if !e.better(e.least(n), e.known) {
		return
	}
	i := e.order[n]
	for _, c := range e.cheapestFirst(i) {
		if e.allowed(i, noChoice, c) {
			e.take(i, c)
			e.branch(n + 1)
			e.take(i, noChoice)
		}
	}
}

// least returns a score that no leaf below is better than: that of the loads so far, and of each
// remaining pair by itself.
func (e *exactSearch) least(n int) score {
	s := e.score()
	e.tried += len(e.hops) / 8 // the cost of score, in paths
	for _, i := range e.order[n:] {
		peak, cost := e.atLeast(i)
		s.worst = max(s.worst, peak)
		s.squares += cost // with the penalty, if the pair must change
	}
	return s
}

// cheapestFirst returns the choices of pair i by their cost now: its start first, of equals.
func (e *exactSearch) cheapestFirst(i int) (choices []int32) {
	costs := make([]float64, len(e.pairs[i].paths))
	for c, path := range e.pairs[i].paths {
		if path != nil {
			_, costs[c] = e.after(i, int32(c))
			choices = append(choices, int32(c))
		}
	}
	slices.SortStableFunc(choices, func(a, b int32) int {
		return cmp.Or(cmp.Compare(costs[a], costs[b]), e.differs(i, a)-e.differs(i, b))
	})
	return choices
}
