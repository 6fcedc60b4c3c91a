package optimize

import (
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Report describes what Plan did.
type Report struct {
	Before, After Outcome
	// LowerBound is a utilisation that the worst link has at least in every plan. There may be no
	// plan that reaches it.
	LowerBound float64
	Changes    []plan.Change // pairs with another VID than before, ascending
	Stopped    Stop
	Tried      int // paths, in all searches and for a proof
}

// Outcome is what a plan means for the links between switches.
type Outcome struct {
	Worst   float64 // utilisation of the worst link
	Squares float64 // sum of the squares of all utilisations
	// Links are the link directions that carry something, by Hop.Index.
	Links []LinkUse
}

// LinkUse is the load of a link in one direction.
type LinkUse struct {
	Hop         topology.Hop
	Utilisation float64     // demand over rate: may be above 1
	Pairs       []plan.Pair // that share it, ascending
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

// Collisions returns the links that several pairs share and that have more to carry than they can,
// the worst first.
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
		Before: before.outcome(), After: after.outcome(),
		LowerBound: p.bound, Changes: p.changes(choice), Stopped: stopped, Tried: tried,
	}
}

// changes returns the pairs whose VID the choices change. Pairs without a choice keep theirs.
func (p *problem) changes(choice []int32) (changes []plan.Change) {
	for i, c := range choice {
		if c == noChoice {
			continue
		}
		pair := p.pairs[i].pair
		if from, to := p.current.PairVID(pair.A, pair.B), p.vids[c]; from != to {
			changes = append(changes, plan.Change{Pair: pair, From: from, To: to})
		}
	}
	return changes
}

func (a *assignment) outcome() Outcome {
	s := a.score()
	o := Outcome{Worst: s.worst, Squares: s.squares}
	for h, load := range a.load {
		if load > 0 {
			o.Links = append(o.Links, LinkUse{topology.HopAt(h), a.utilisation(int32(h)), a.sharers(int32(h))})
		}
	}
	return o
}
