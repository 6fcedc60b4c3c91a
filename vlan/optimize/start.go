package optimize

import "math"

// begin returns the search at the best of its starting plans, each improved: the current plan; and,
// if that does not reach the bound, an edge colouring and the largest pairs first. If the number of
// changes is limited, it is the current plan.
func (p *problem) begin(effort int) *search {
	starts := []func(*assignment){(*assignment).fromCurrent}
	if p.most == math.MaxInt {
		starts = append(starts, (*assignment).fromColours, (*assignment).chooseLargestFirst)
	}
	var best *search
	for _, start := range starts {
		s := &search{assignment: p.newAssignment(), effort: effort, inChain: make([]bool, len(p.pairs))}
		if best != nil {
			s.tried = best.tried
		}
		start(s.assignment)
		s.improve()
		if best == nil || p.better(s.score(), best.score()) {
			best = s
		}
		best.tried = s.tried
		if best.score().worst <= p.bound*(1+near) {
			break
		}
	}
	return best
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
		best, least := int32(noChoice), 0.0
		for c, path := range a.pairs[i].paths {
			if path == nil {
				continue
			}
			_, cost := a.after(i, int32(c))
			start := int32(c) == a.pairs[i].start
			if best == noChoice || cost < least-a.still || start && cost <= least+a.still {
				best, least = int32(c), cost
			}
		}
		a.take(i, best)
	}
}
