package vlan

import (
	"slices"

	"github.com/rawlane/rawlane/transport"
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

// Change is another VID for a pair.
type Change struct {
	Pair     Pair
	From, To transport.VID
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
	before := p.newAssignment()
	before.takeCurrent()
	after := p.newAssignment()
	for i, c := range choice {
		after.take(i, c)
	}
	r := Report{Before: before.outcome(), After: after.outcome(), LowerBound: p.bound, Stopped: stopped, Tried: tried}
	for i := range p.pairs {
		c := &p.pairs[i]
		if from, to := p.current.PairVID(c.pair.A, c.pair.B), p.vids[choice[i]]; from != to {
			r.Changes = append(r.Changes, Change{c.pair, from, to})
		}
	}
	return r
}

func (a *assignment) outcome() Outcome {
	s := a.score()
	o := Outcome{Worst: s.worst, Squares: s.squares}
	for h, load := range a.load {
		if load == 0 {
			continue
		}
		use := LinkUse{Hop: HopAt(h), Utilisation: a.utilisation(int32(h))}
		for _, i := range a.on[h/2] {
			if a.burden(int(i), a.pairs[i].paths[a.choice[i]], int32(h)) > 0 {
				use.Pairs = append(use.Pairs, a.pairs[i].pair)
			}
		}
		slices.SortFunc(use.Pairs, Pair.Compare)
		o.Links = append(o.Links, use)
	}
	return o
}
