package optimize

import (
	"math"
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
)

// score is what plans are compared by.
type score struct {
	worst   float64 // utilisation
	squares float64 // sum of all hops' squared utilisations
	changed int     // pairs
}

// cost is what counts after the worst link.
func (p *problem) cost(s score) float64 { return s.squares + p.penalty*float64(s.changed) }

// better reports whether a is better than b: by the worst link, then by cost, then by changed
// pairs.
func (p *problem) better(a, b score) bool {
	if d := a.worst - b.worst; max(d, -d) > tolerance*b.worst {
		return d < 0
	}
	if d := p.cost(a) - p.cost(b); max(d, -d) > p.still {
		return d < 0
	}
	return a.changed < b.changed
}

// assignment is a choice for each pair, and the load of the links under it.
type assignment struct {
	*problem
	choice  []int32   // of each pair
	load    []int64   // by Hop.Index, in units
	on      [][]int32 // by link: the pairs that cross it
	changed int
	tried   int // paths, so far
}

// newAssignment returns an assignment in which no pair has a choice.
func (p *problem) newAssignment() *assignment {
	a := &assignment{
		problem: p,
		choice:  slices.Repeat([]int32{noChoice}, len(p.pairs)),
		load:    make([]int64, len(p.inverse)),
		on:      make([][]int32, len(p.topology.Links)),
	}
	for i := range p.pairs {
		if p.pairs[i].start == noChoice {
			a.changed++
		}
	}
	return a
}

// takeCurrent chooses as the current plan does. Pairs that it does not connect stay without a
// choice.
func (a *assignment) takeCurrent() {
	for i := range a.pairs {
		if start := a.pairs[i].start; start != noChoice {
			a.take(i, start)
		}
	}
}

// takeAll makes the given choices.
func (a *assignment) takeAll(choice []int32) {
	for i, c := range choice {
		a.take(i, c)
	}
}

// addLoad adds a pair's load, times sign, to a path's hops.
func (a *assignment) addLoad(i int, c int32, sign int64) {
	p := &a.pairs[i]
	forth, back := sign*p.forth, sign*p.back
	for _, h := range p.paths[c] {
		a.load[h] += forth
		a.load[h^1] += back
	}
}

// take gives pair i choice c instead of the one before. noChoice takes the pair out.
func (a *assignment) take(i int, c int32) {
	p := &a.pairs[i]
	old := a.choice[i]
	if old != noChoice {
		a.addLoad(i, old, -1)
		for _, h := range p.paths[old] {
			on := a.on[h/2]
			k := slices.Index(on, int32(i))
			on[k] = on[len(on)-1]
			a.on[h/2] = on[:len(on)-1]
		}
	}
	if c != noChoice {
		a.addLoad(i, c, 1)
		for _, h := range p.paths[c] {
			a.on[h/2] = append(a.on[h/2], int32(i))
		}
	}
	a.changed += a.differs(i, c) - a.differs(i, old)
	a.choice[i] = c
}

// differs is 1 if c is a change for pair i, or 0. To have no choice yet is none, unless there was
// none at the start.
func (a *assignment) differs(i int, c int32) int {
	start := a.pairs[i].start
	if start == noChoice || c != noChoice && c != start {
		return 1
	}
	return 0
}

// allowed reports whether pair i, which has choice old, may choose c without too many changes.
func (a *assignment) allowed(i int, old, c int32) bool {
	return a.changed < a.most || a.differs(i, c) <= a.differs(i, old)
}

// after returns what choice c means once the load of pair i is added to its hops: the highest
// utilisation among them, and the growth of the cost. The load of pair i must not be on any hop.
func (a *assignment) after(i int, c int32) (peak, cost float64) {
	a.tried++
	p := &a.pairs[i]
	for _, h := range p.paths[c] {
		if p.forth > 0 {
			more, u := float64(p.forth)*a.inverse[h], float64(a.load[h])*a.inverse[h]
			cost += more * (2*u + more)
			peak = max(peak, u+more)
		}
		if p.back > 0 {
			more, u := float64(p.back)*a.inverse[h], float64(a.load[h^1])*a.inverse[h]
			cost += more * (2*u + more)
			peak = max(peak, u+more)
		}
	}
	if p.start != noChoice && c != p.start {
		cost += a.penalty
	}
	return peak, cost
}

// atLeast returns the peak and the cost that pair i, which has no choice, brings at least.
func (a *assignment) atLeast(i int) (peak, cost float64) {
	peak, cost = math.Inf(1), math.Inf(1)
	for c, path := range a.pairs[i].paths {
		if path != nil {
			u, v := a.after(i, int32(c))
			peak, cost = min(peak, u), min(cost, v)
		}
	}
	return peak, cost
}

// cheapest returns the choice of pair i, other than its present one, that costs least, of those
// whose path stays below limit; and by how much the cost grows. Of equals it is the pair's start.
// It is noChoice if there is none.
func (a *assignment) cheapest(i int, limit float64) (best int32, growth float64) {
	best = noChoice
	old, was := a.choice[i], 0.0
	if old != noChoice {
		a.addLoad(i, old, -1)
		defer a.addLoad(i, old, 1)
		_, was = a.after(i, old)
	}
	p := &a.pairs[i]
	for c := range p.paths {
		c := int32(c)
		if c == old || p.paths[c] == nil || !a.allowed(i, old, c) {
			continue
		}
		peak, cost := a.after(i, c)
		if peak >= limit {
			continue
		}
		if more := cost - was; best == noChoice || more < growth-a.still || c == p.start && more <= growth+a.still {
			best, growth = c, more
		}
	}
	return best, growth
}

// burden returns how many units pair i puts on a hop.
func (a *assignment) burden(i int, hop int32) int64 {
	for _, h := range a.pairs[i].paths[a.choice[i]] {
		switch h {
		case hop:
			return a.pairs[i].forth
		case hop ^ 1:
			return a.pairs[i].back
		}
	}
	return 0
}

// appendLoading appends the pairs that load a hop to an empty list, ascending.
func (a *assignment) appendLoading(pairs []int, hop int32) []int {
	for _, i := range a.on[hop/2] {
		if a.burden(int(i), hop) > 0 {
			pairs = append(pairs, int(i))
		}
	}
	slices.Sort(pairs)
	return pairs
}

// sharers returns the pairs that load a hop, ascending.
func (a *assignment) sharers(hop int32) (pairs []plan.Pair) {
	for _, i := range a.appendLoading(nil, hop) {
		pairs = append(pairs, a.pairs[i].pair)
	}
	return pairs
}

func (a *assignment) utilisation(h int32) float64 { return float64(a.load[h]) * a.inverse[h] }

// worstHop returns the hop with the highest utilisation, the first of several, and that
// utilisation.
func (a *assignment) worstHop() (worst int32, utilisation float64) {
	for _, h := range a.hops {
		if u := a.utilisation(h); u > utilisation*(1+tolerance) {
			worst, utilisation = h, u
		}
	}
	return worst, utilisation
}

func (a *assignment) score() score {
	s := score{changed: a.changed}
	for _, h := range a.hops {
		u := a.utilisation(h)
		s.worst = max(s.worst, u)
		s.squares += u * u
	}
	return s
}
