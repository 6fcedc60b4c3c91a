package optimize

const (
	// controlTries is how often each path of each pair is tried out in each period to find a better plan, on average, and controlEffort how
	// many paths at most: some tens of milliseconds.
	controlTries, controlEffort = 50, 1 << 20
)

// some returns the current choices, with at most that many of the changes that lead to choice: those first that take load off
// the worst link, then those after which cost is least, none of which makes the worst link worse, taken one after the
// other. If there is no such change, it looks for the best plan with so few changes, taken together.
func (p *Problem) Some(choice []int32, most int) []int32 {
	a := p.NewAssignment()
	a.TakeCurrent()
	open := make([]int, 0, len(choice))
	for i, c := range choice {
		if a.choice[i] != c {
			open = append(open, i)
		}
	}
	for range most {
		k := a.nextChange(open, choice)
		if k < 0 {
			break
		}
		a.take(open[k], choice[open[k]])
		open = append(open[:k], open[k+1:]...)
	}
	for i := range choice {
		if a.choice[i] == NoChoice { // must change
			a.take(i, choice[i])
		}
	}
	if a.changed > 0 {
		return a.snapshot()
	}
	few := *p
	few.most = most
	return few.Search(p.ControlEffort())
}

// nextChange returns which of the open changes should be next, or -1 if each would make the worst link worse.
func (a *assignment) nextChange(open []int, choice []int32) (best int) {
	_, limit := a.worstHop()
	best = -1
	relieves, least := false, 0.0
	for k, i := range open {
		old := a.choice[i]
		if old == NoChoice {
			continue
		}
		_, on := a.WorstOf(i, old)
		a.addLoad(i, old, -1)
		_, was := a.after(i, old)
		peak, cost := a.after(i, choice[i])
		a.addLoad(i, old, 1)
		if peak > limit*(1+tolerance) {
			continue
		}
		r := on >= limit*(1-tolerance) && peak < limit*(1-tolerance)
		if best < 0 || r && !relieves || r == relieves && cost-was < least {
			best, relieves, least = k, r, cost-was
		}
	}
	return best
}

// controlEffort is what finding a better plan may cost in a period.
func (p *Problem) ControlEffort() int {
	return min(controlTries*len(p.Pairs)*len(p.Vids), controlEffort)
}

// worstOf returns the hop with the highest utilisation on the way of a pair, in the directions in which it sends.
func (a *assignment) WorstOf(i int, c int32) (worst int32, utilisation float64) {
	p := &a.Pairs[i]
	for _, h := range p.paths[c] {
		if u := a.utilisation(h); p.forth > 0 && u > utilisation {
			worst, utilisation = h, u
		}
		if u := a.utilisation(h ^ 1); p.back > 0 && u > utilisation {
			worst, utilisation = h^1, u
		}
	}
	return worst, utilisation
}
