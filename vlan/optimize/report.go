package optimize

import (
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Report says what Optimize did.
type Report struct {
	Before, After Outcome
	// LowerBound is a utilisation that no plan brings the worst link below. There may be no plan that reaches it.
	LowerBound float64
	// Changes are the pairs that have another VID than before, ascending.
	Changes []plan.Change
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
	Hop         topology.Hop
	Utilisation float64     // demand over rate: may be above 1
	Pairs       []plan.Pair // who shares it, ascending
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

func (p *Problem) report(choice []int32, stopped Stop, tried int) Report {
	before, after := p.NewAssignment(), p.NewAssignment()
	before.TakeCurrent()
	after.TakeAll(choice)
	return Report{
		Before: before.outcome(), After: after.outcome(), LowerBound: p.Bound, Changes: p.Changes(choice), Stopped: stopped, Tried: tried,
	}
}

// changes returns what choices change of the current plan.
func (p *Problem) Changes(choice []int32) (changes []plan.Change) {
	for i := range p.Pairs {
		c := &p.Pairs[i]
		if from, to := p.Current.PairVID(c.Pair.A, c.Pair.B), p.Vids[choice[i]]; from != to {
			changes = append(changes, plan.Change{Pair: c.Pair, From: from, To: to})
		}
	}
	return changes
}

func (a *assignment) outcome() Outcome {
	s := a.Score()
	o := Outcome{Worst: s.Worst, Squares: s.squares}
	for h, load := range a.load {
		if load > 0 {
			o.Links = append(o.Links, LinkUse{topology.HopAt(h), a.utilisation(int32(h)), a.Sharers(int32(h))})
		}
	}
	return o
}

// sharers returns the pairs that load a hop, ascending.
func (a *assignment) Sharers(h int32) (pairs []plan.Pair) {
	for _, i := range a.on[h/2] {
		if a.burden(int(i), a.Pairs[i].paths[a.choice[i]], h) > 0 {
			pairs = append(pairs, a.Pairs[i].Pair)
		}
	}
	slices.SortFunc(pairs, plan.Pair.Compare)
	return pairs
}
