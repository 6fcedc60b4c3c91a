package optimize

import (
	"math"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// maxProved is how many pairs Optimize tries to prove its plan for, and maxProof how many paths it tries out for that: some
// tens of milliseconds.
const maxProved, maxProof = 24, 1 << 19

// Options are the limits of Optimize. The zero value is good: as many changes as help.
type Options struct {
	// MaxChanges is how many pairs may change their VID at most; 0 is no limit. Pairs that must change, since their
	// VID does not connect them, come on top.
	MaxChanges int
	// PerChange is what each changed pair must buy when it does not serve the worst link: that part of the average
	// pair's share of the sum of squares. 0.1 leaves pairs alone that would gain little; 0 changes them for any gain.
	PerChange float64
	// Keep tells which pairs must keep their VID, if not nil.
	Keep func(plan.Pair) bool
	// Effort bounds the search, in paths that are tried out; 0 is DefaultEffort. The same effort gives the same
	// plan, on every machine.
	Effort int
}

// DefaultEffort is how many paths Optimize tries out before it gives up looking for a better plan: a few tenths of a second.
const DefaultEffort = 8 << 20

// Optimize chooses the VIDs of the pairs that talk, so that
//
//   - the worst link, which is the one with the highest utilisation (load over rate, each direction by itself), is as low as possible;
//   - then the sum of the squares of all links' utilisations;
//   - then the number of pairs that differ from current.
//
// It returns current with these VIDs: pairs that do not talk keep theirs, and pairs whose VID is that of their nodes' rule are not listed. If
// current is nil, it is the plan of VFREC §2.3: default VIDs go round, the lower node has priority. A pair whose VID does not connect it (a
// cable is gone) gets one that does. Cables to hosts do not count, as no choice changes their load.
//
// To find the best plan is NP-hard (with two VIDs between two switches it is the partition of a set). Optimize proves its answer by branch and
// bound where that takes few steps: some ten pairs. Else it begins with the best of
//
//   - current,
//   - each pair in turn, the largest first, put where the sum of squares grows least,
//   - and on fat trees of two levels, edge colouring. The leaves are the vertices, the pairs the edges, the VIDs the colours; edges of one colour at one leaf
//     share a link. If each pair talks one way, these are edges between senders and receivers: bipartite, so that König's theorem gives
//     each of n equal pairs of a leaf its own of k VIDs, or as few to a link as ⌈n/k⌉, which is optimal. If pairs talk both ways they are edges of an
//     undirected multigraph, where that can be impossible (three leaves, each with one pair to each other, and two VIDs: Vizing, Shannon). They are given
//     directions along Euler trails first, so that half of them leave each leaf; then at most 2⌈n/2k⌉ share a link, which is never more than one
//     above ⌈n/k⌉.
//
// From there it moves single pairs off the worst link, then whole chains (a pair takes a VID, whoever is in its way takes the VID that it left, and so on:
// in a fat tree these are Kempe's chains), then single pairs for the sum of squares, and begins again from places near by, until the worst link is at its lower
// bound, or the effort is used up. What is left to chance has a fixed seed.
//
// Errors: topology.ErrInvalid, traffic.ErrInvalid; ErrNoPath where no VID connects a pair; plan.ErrInvalid for a plan of other nodes.
//
// Source: VFREC §2.4, §3.1 leave the method open.
func Plan(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*plan.Plan, Report, error) {
	p, err := NewProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	best, stopped, tried := p.solve(opt.effort())
	return p.Plan(best), p.report(best, stopped, tried), nil
}

func (o Options) effort() int {
	if o.Effort > 0 {
		return o.Effort
	}
	return DefaultEffort
}

func (o Options) maxChanges() int {
	if o.MaxChanges > 0 {
		return o.MaxChanges
	}
	return math.MaxInt
}

// Stop is why Optimize went no further.
type Stop int

const (
	// Optimal plans were proved to be the best there is.
	Optimal Stop = iota
	// AtBound means that no plan has a lower worst link, by more than a thousandth; the sum of squares may not be the least.
	AtBound
	// EffortUsed means that the worst link may not be the lowest: compare it with Report.LowerBound.
	EffortUsed
)

// String says in words why Optimize went no further.
func (s Stop) String() string {
	switch s {
	case Optimal:
		return "proved to be the best"
	case AtBound:
		return "the worst link is as low as it can be"
	case EffortUsed:
		return "no better plan found"
	}
	return "unknown"
}

// solve returns the choice of each pair.
func (p *Problem) solve(effort int) (choice []int32, stopped Stop, tried int) {
	s := p.begin(effort)
	if len(p.Pairs) <= maxProved {
		if best, proved := p.exact(s.snapshot(), maxProof); proved {
			return best, Optimal, s.tried
		}
	}
	s.explore()
	if s.Score().Worst <= p.Bound*(1+near) {
		return s.snapshot(), AtBound, s.tried
	}
	return s.snapshot(), EffortUsed, s.tried
}

// search is solve without the proof.
func (p *Problem) Search(effort int) []int32 {
	s := p.begin(effort)
	s.explore()
	return s.snapshot()
}

// plan returns the current plan with the choices made.
func (p *Problem) Plan(choice []int32) *plan.Plan {
	vids := make(map[plan.Pair]transport.VID)
	for i := range p.Pairs {
		c := &p.Pairs[i]
		if vid := p.Vids[choice[i]]; vid != p.Current.PairVID(c.Pair.A, c.Pair.B) {
			vids[c.Pair] = vid
		}
	}
	return p.Current.Exchange(vids)
}
