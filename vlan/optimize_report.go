package vlan

import (
	"slices"
)

// Report says what Optimize did.
type Report struct {
	Before, After Outcome
	// LowerBound is a utilisation that no plan brings the worst link below. There may be no plan that reaches it.
	LowerBound float64
	// Changes are the pairs that have another VID than before, ascending.
	Changes []Change
	Stopped Stop
	Tried   int // paths
}

// Outcome is what a plan means for the links between switches.
type Outcome struct {
	Worst   float64 // utilisation of the worst link
	Squares float64 // sum of the squares of all utilisations
	// Links are those that carry something, by Hop.Index: each direction by itself.
	Links []LinkUse
}

// LinkUse is what crosses a link in one direction.
type LinkUse struct {
	Hop         Hop
	Utilisation float64 // demand over rate: may be above 1
	Pairs       []Pair  // who shares it, ascending
}

// WorstLinks returns the links with the highest utilisation: several, if they are equal.
func (o *Outcome) WorstLinks() (worst []LinkUse) {
	for _, l := range o.Links {
		if l.Utilisation >= o.Worst*(1-tolerance) {
			worst = append(worst, l)
		}
	}
	return worst
}

// Collisions returns the links that several pairs share and that have more to carry than they can, the worst first.
func (o *Outcome) Collisions() (crowded []LinkUse) {
	for _, l := range o.Links {
		if len(l.Pairs) > 1 && l.Utilisation > 1+tolerance {
			crowded = append(crowded, l)
		}
	}
	slices.SortStableFunc(crowded, func(a, b LinkUse) int {
		switch {
		case a.Utilisation > b.Utilisation*(1+tolerance):
			return -1
		case b.Utilisation > a.Utilisation*(1+tolerance):
			return 1
		}
		return 0
	})
	return crowded
}

func (p *problem) report(choice []int32, stopped Stop, tried int) Report {
	before, after := p.newAssignment(), p.newAssignment()
	before.takeCurrent()
	after.takeAll(choice)
	return Report{
		Before: before.outcome(), After: after.outcome(), LowerBound: p.bound, Changes: p.changes(choice), Stopped: stopped, Tried: tried,
	}
}

// changes returns what choices change of the current plan.
func (p *problem) changes(choice []int32) (changes []Change) {
	for i := range p.pairs {
		c := &p.pairs[i]
		if from, to := p.current.PairVID(c.pair.A, c.pair.B), p.vids[choice[i]]; from != to {
			changes = append(changes, Change{c.pair, from, to})
		}
	}
	return changes
}

func (a *assignment) outcome() Outcome {
	s := a.score()
	o := Outcome{Worst: s.worst, Squares: s.squares}
	for h, load := range a.load {
		if load > 0 {
			o.Links = append(o.Links, LinkUse{HopAt(h), a.utilisation(int32(h)), a.sharers(int32(h))})
		}
	}
	return o
}

// sharers returns the pairs that load a hop, ascending.
func (a *assignment) sharers(h int32) (pairs []Pair) {
	for _, i := range a.on[h/2] {
		if a.burden(int(i), a.pairs[i].paths[a.choice[i]], h) > 0 {
			pairs = append(pairs, a.pairs[i].pair)
		}
	}
	slices.SortFunc(pairs, Pair.Compare)
	return pairs
}
