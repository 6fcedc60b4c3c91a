package optimize

// batch returns the current choices with at most opt.Batch of the changes that lead to choice, and
// those of the pairs that must change. It makes one change after the other: first those that must
// be, then those that take load off the worst link, then those after which the cost is least; and
// none of the latter makes the worst link worse. If there is no such change at all, it searches for
// the best plan with so few changes, made together. It returns how many paths it has tried.
func (p *problem) batch(choice []int32, opt Options) (_ []int32, tried int) {
	a := p.newAssignment()
	a.takeCurrent()
	var open []int
	for i, c := range choice {
		switch a.choice[i] {
		case noChoice: // must change
			a.take(i, c)
		case c:
		default:
			open = append(open, i)
		}
	}
	for range opt.Batch {
		k := a.nextChange(open, choice)
		if k < 0 {
			break
		}
		a.take(open[k], choice[open[k]])
		open = append(open[:k], open[k+1:]...)
	}
	if a.changed > 0 {
		return a.choice, a.tried
	}
	few := *p
	few.most = opt.Batch
	s, _, tried := few.search(opt.effort())
	return s.choice, a.tried + tried
}

// nextChange returns the open change that comes next, or -1 if each makes the worst link worse.
func (a *assignment) nextChange(open []int, choice []int32) (best int) {
	_, limit := a.worstHop()
	best = -1
	relieves, least := false, 0.0
	for k, i := range open {
		a.addLoad(i, a.choice[i], -1)
		on, was := a.after(i, a.choice[i])
		peak, cost := a.after(i, choice[i])
		a.addLoad(i, a.choice[i], 1)
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
