package optimize

import "slices"

// score is what a plan is judged by.
type score struct {
	Worst   float64 // utilisation
	squares float64 // sum of all hops' squared utilisations
	changed int     // pairs
}

// cost is what comes after the worst link.
func (p *Problem) cost(s score) float64 { return s.squares + p.penalty*float64(s.changed) }

// better reports whether a is better than b: by the worst link, then by cost, then by changed pairs.
func (p *Problem) better(a, b score) bool {
	if d := a.Worst - b.Worst; d > tolerance*b.Worst || -d > tolerance*b.Worst {
		return d < 0
	}
	if d := p.cost(a) - p.cost(b); d > p.still || -d > p.still {
		return d < 0
	}
	return a.changed < b.changed
}

// assignment is a choice for each pair, and what it means for the links.
type assignment struct {
	*Problem
	choice  []int32   // of each pair
	load    []int64   // by Hop.Index, in units
	on      [][]int32 // by link: the pairs that cross it
	changed int
	tried   int // paths, so far
}

// NewAssignment returns an assignment in which no pair has a choice.
func (p *Problem) NewAssignment() *assignment {
	a := &assignment{
		Problem: p,
		choice:  slices.Repeat([]int32{NoChoice}, len(p.Pairs)),
		load:    make([]int64, len(p.inverse)),
		on:      make([][]int32, len(p.Topology.Links)),
	}
	for i := range p.Pairs {
		if p.Pairs[i].Start == NoChoice {
			a.changed++
		}
	}
	return a
}

// takeCurrent chooses as the current plan does. Pairs that it does not connect stay without a choice.
func (a *assignment) TakeCurrent() {
	for i := range a.Pairs {
		if start := a.Pairs[i].Start; start != NoChoice {
			a.take(i, start)
		}
	}
}

// takeAll makes the given choices.
func (a *assignment) TakeAll(choice []int32) {
	for i, c := range choice {
		a.take(i, c)
	}
}

// addLoad adds a pair's load, times sign, to a path's hops.
func (a *assignment) addLoad(i int, c int32, sign int64) {
	p := &a.Pairs[i]
	forth, back := sign*p.forth, sign*p.back
	for _, h := range p.paths[c] {
		a.load[h] += forth
		a.load[h^1] += back
	}
}

// take lets pair i choose c, instead of what it chose before. With noChoice it chooses nothing.
func (a *assignment) take(i int, c int32) {
	p := &a.Pairs[i]
	old := a.choice[i]
	if old != NoChoice {
		a.addLoad(i, old, -1)
		for _, h := range p.paths[old] {
			on := a.on[h/2]
			k := slices.Index(on, int32(i))
			on[k] = on[len(on)-1]
			a.on[h/2] = on[:len(on)-1]
		}
	}
	if c != NoChoice {
		a.addLoad(i, c, 1)
		for _, h := range p.paths[c] {
			a.on[h/2] = append(a.on[h/2], int32(i))
		}
	}
	a.changed += a.differs(i, c) - a.differs(i, old)
	a.choice[i] = c
}

// differs is 1 if c is a change for pair i, or 0. To have no choice yet is none, unless there was none at the start.
func (a *assignment) differs(i int, c int32) int {
	start := a.Pairs[i].Start
	if start == NoChoice || c != NoChoice && c != start {
		return 1
	}
	return 0
}

// allowed reports whether pair i, which has choice old, may choose c without too many pairs being changed.
func (a *assignment) allowed(i int, old, c int32) bool {
	return a.changed < a.most || a.differs(i, c) <= a.differs(i, old)
}

// after returns what the hops of choice c have if the load of pair i, which must not be on any, is added: the highest
// utilisation among them, and by how much cost grows.
func (a *assignment) after(i int, c int32) (peak, cost float64) {
	a.tried++
	p := &a.Pairs[i]
	for _, h := range p.paths[c] {
		forth, u := float64(p.forth)*a.inverse[h], float64(a.load[h])*a.inverse[h]
		back, v := float64(p.back)*a.inverse[h], float64(a.load[h^1])*a.inverse[h]
		cost += forth*(2*u+forth) + back*(2*v+back)
		if p.forth > 0 {
			peak = max(peak, u+forth)
		}
		if p.back > 0 {
			peak = max(peak, v+back)
		}
	}
	if p.Start != NoChoice && c != p.Start {
		cost += a.penalty
	}
	return peak, cost
}

// burden returns how many units pair i puts on a hop if it takes a path: none if the path does not have it.
func (a *assignment) burden(i int, path []int32, hop int32) int64 {
	for _, h := range path {
		switch h {
		case hop:
			return a.Pairs[i].forth
		case hop ^ 1:
			return a.Pairs[i].back
		}
	}
	return 0
}

func (a *assignment) utilisation(h int32) float64 { return float64(a.load[h]) * a.inverse[h] }

// worstHop returns the hop with the highest utilisation, the first of several, and that utilisation.
func (a *assignment) worstHop() (worst int32, utilisation float64) {
	for h := range a.load {
		if u := a.utilisation(int32(h)); u > utilisation*(1+tolerance) {
			worst, utilisation = int32(h), u
		}
	}
	return worst, utilisation
}

func (a *assignment) Score() score {
	s := score{changed: a.changed}
	for h := range a.load {
		u := a.utilisation(int32(h))
		s.Worst = max(s.Worst, u)
		s.squares += u * u
	}
	return s
}

// snapshot returns the choices.
func (a *assignment) snapshot() []int32 { return slices.Clone(a.choice) }
