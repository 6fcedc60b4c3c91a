package optimize

import (
	"cmp"
	"slices"
)

// exact finds the best choices by branch and bound, beginning with those that are known, and with at most that effort.
// It reports whether it came to the end: then there are none better.
//
// Pairs choose one after the other, the largest first. Loads only grow, and the cost of a pair grows with the loads that it finds; so
// what those still to come would add now, each by itself, is the least that they will.
func (p *Problem) exact(known []int32, effort int) (best []int32, proved bool) {
	e := exactSearch{assignment: p.NewAssignment(), best: known, effort: effort}
	e.TakeAll(known)
	e.known = e.Score()
	if e.known.changed > p.most {
		e.known = score{Worst: inf, squares: inf}
	}
	for i := range known {
		e.take(i, NoChoice)
		e.order = append(e.order, i)
	}
	slices.SortStableFunc(e.order, func(i, j int) int {
		return cmp.Compare(p.Pairs[j].forth+p.Pairs[j].back, p.Pairs[i].forth+p.Pairs[i].back)
	})
	e.branch(0)
	return e.best, e.tried < e.effort
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
		if found := e.Score(); e.better(found, e.known) {
			e.best, e.known = e.snapshot(), found
		}
		return
	}
	if !e.better(e.least(n), e.known) {
		return
	}
	i := e.order[n]
	for _, c := range e.cheapestFirst(i) {
		if e.allowed(i, NoChoice, c) {
			e.take(i, c)
			e.branch(n + 1)
			e.take(i, NoChoice)
		}
	}
}

// least returns a score that none of the leaves below is better than: of the loads so far, and each remaining pair by itself.
func (e *exactSearch) least(n int) score {
	s := e.Score()
	e.tried += len(e.load) / 8 // what that costs, in paths
	for _, i := range e.order[n:] {
		peak, cost := inf, inf
		for c, path := range e.Pairs[i].paths {
			if path != nil {
				u, v := e.after(i, int32(c))
				peak, cost = min(peak, u), min(cost, v)
			}
		}
		s.Worst = max(s.Worst, peak)
		s.squares += cost // with the penalty, if it must change
	}
	return s
}

// cheapestFirst returns the choices of pair i by what they would cost now: its start first, of equals.
func (e *exactSearch) cheapestFirst(i int) []int32 {
	type option struct {
		choice int32
		cost   float64
	}
	var options []option
	for c, path := range e.Pairs[i].paths {
		if path != nil {
			_, cost := e.after(i, int32(c))
			options = append(options, option{int32(c), cost})
		}
	}
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), e.differs(i, a.choice)-e.differs(i, b.choice))
	})
	choices := make([]int32, len(options))
	for k, o := range options {
		choices[k] = o.choice
	}
	return choices
}
