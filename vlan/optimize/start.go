package optimize

import (
	"cmp"
	"math"
	"slices"
)

// begin returns the search at the best of its starting points, each improved: the current plan; if that does not reach the
// bound, also the largest pairs first, and edge colouring. With few changes allowed, it is the current plan.
func (p *Problem) begin(effort int) *search {
	starts := []func(*assignment){(*assignment).fromCurrent}
	if p.most == math.MaxInt {
		starts = append(starts, (*assignment).fromColours, (*assignment).largestFirst)
	}
	var best *search
	for _, start := range starts {
		s := &search{assignment: p.NewAssignment(), effort: effort, inWay: make([]bool, len(p.Pairs))}
		if best != nil {
			s.tried = best.tried
		}
		start(s.assignment)
		s.improve()
		if best == nil || p.better(s.Score(), best.Score()) {
			best = s
		}
		best.tried = s.tried
		if best.Score().Worst <= p.Bound*(1+near) {
			break
		}
	}
	return best
}

// fromCurrent chooses as the current plan does, and for pairs that it does not connect as largestFirst.
func (a *assignment) fromCurrent() {
	a.TakeCurrent()
	a.largestFirst()
}

// largestFirst lets pairs without a choice choose, those with the highest load first: where cost grows least.
func (a *assignment) largestFirst() {
	order := make([]int, 0, len(a.Pairs))
	for i, c := range a.choice {
		if c == NoChoice {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(a.Pairs[j].forth+a.Pairs[j].back, a.Pairs[i].forth+a.Pairs[i].back)
	})
	for _, i := range order {
		best, least := int32(NoChoice), 0.0
		for c, path := range a.Pairs[i].paths {
			if path == nil {
				continue
			}
			if _, cost := a.after(i, int32(c)); best == NoChoice || cost < least-a.still || int32(c) == a.Pairs[i].Start && cost <= least+a.still {
				best, least = int32(c), cost
			}
		}
		a.take(i, best)
	}
}
