package optimize

import (
	"cmp"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// DefaultEffort is the effort of Plan when Options name none: a few tenths of a second.
const DefaultEffort = 8 << 20

const (
	// maxProved is the largest number of pairs for which Plan tries to prove its answer.
	maxProved = 24
	// proofShare is the part of the effort that a proof may cost: one in so many.
	proofShare = 16
)

// Options are the limits of Plan. The zero value changes every pair for which that helps.
type Options struct {
	// MaxChanges is the largest number of pairs that may change their VID; 0 is no limit. Pairs
	// whose VID does not connect them must change, and come on top.
	MaxChanges int
	// PerChange is the gain that each changed pair must bring when the worst link stays the same: a
	// part of the average pair's share of the sum of squares. With 0.1, pairs that gain little
	// stay; with 0, any gain counts.
	PerChange float64
	// MinGain is the part by which the worst link must become lower, and GainPerChange is added to
	// it for each pair that changes. If the gain is less, Plan returns the present plan, in which
	// those pairs alone change whose VID does not connect them. 0 asks for nothing.
	MinGain, GainPerChange float64
	// Batch is the largest number of changes to make at once, of those that lead to the best plan:
	// none of them makes the worst link worse on the way. 0 is all. Pairs whose VID does not
	// connect them change first, and come on top.
	Batch int
	// Keep reports which pairs must keep their VID. It may be nil.
	Keep func(plan.Pair) bool
	// Avoid reports which VIDs a pair must not change to, as those that carry nothing between its
	// nodes. It may be nil. A pair whose VID does not connect it, and that is to avoid all that do,
	// gets one of these.
	Avoid func(plan.Pair, transport.VID) bool
	// Effort bounds a search, in paths that are tried; 0 is DefaultEffort. A proof may take a
	// sixteenth more. Where what it finds is not for use, as it gains too little or as none of its
	// changes can be the first of a Batch, a second search for a plan of few changes may take as
	// much again. The same effort gives the same plan on every machine.
	Effort int
}

func (o Options) effort() int { return cmp.Or(o.Effort, DefaultEffort) }

// Stop is the reason why Plan went no further.
type Stop int

// The reasons.
const (
	// Optimal: the plan is proved to be the best.
	Optimal Stop = iota
	// AtBound: no plan has a worst link that is lower by more than a thousandth. The sum of squares
	// may not be the least.
	AtBound
	// EffortUsed: the worst link may not be the lowest; Report.LowerBound says how far it may be
	// off.
	EffortUsed
	// GainTooSmall: no plan was found that gains MinGain.
	GainTooSmall
)

// String describes the reason.
func (s Stop) String() string {
	switch s {
	case Optimal:
		return "proved to be the best"
	case AtBound:
		return "the worst link is as low as it can be"
	case EffortUsed:
		return "no better plan found"
	case GainTooSmall:
		return "too little to gain"
	}
	return "unknown"
}

// Plan returns current with better VIDs for the pairs that talk. Pairs that do not talk keep their
// VID, and a pair that uses the default of its nodes is not listed. A pair whose VID does not
// connect it, because a cable is gone, gets one that does. If current is nil, the plan of
// plan.RoundRobin stands for it. The package's comment says what is better, and how the plan is
// found.
//
// Errors: topology.ErrInvalid, traffic.ErrInvalid; topology.ErrNoPath where no VID connects a pair;
// plan.ErrInvalid for a plan of other nodes.
func Plan(
	t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options,
) (*plan.Plan, Report, error) {
	p, err := newProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	best, stopped, tried := p.solve(opt)
	r := p.report(best, stopped, tried)
	if stopped == GainTooSmall && len(r.Changes) == 0 {
		return p.current, r, nil
	}
	return p.plan(r.Changes), r, nil
}

// solve returns the choice of each pair.
func (p *problem) solve(opt Options) (choice []int32, stopped Stop, tried int) {
	before := p.newAssignment()
	before.takeCurrent()
	was := before.score().worst
	small := func(gain float64, changes int) bool {
		return opt.MinGain > 0 && gain < was*(opt.MinGain+opt.GainPerChange*float64(changes))
	}
	if small(was-p.bound, 0) {
		choice, tried = p.leave(before, opt)
		return choice, GainTooSmall, tried
	}
	s, stopped, tried := p.search(opt.effort())
	changes := len(p.changes(s.choice))
	if small(was-s.score().worst, changes) {
		choice, more := p.leave(before, opt)
		return choice, GainTooSmall, tried + more
	}
	if opt.Batch > 0 && changes-before.changed > opt.Batch {
		choice, more := p.batch(s.choice, opt)
		return choice, EffortUsed, tried + more
	}
	return s.choice, stopped, tried
}

// leave returns the choices of the current plan, and the best for pairs that it does not connect.
func (p *problem) leave(current *assignment, opt Options) (choice []int32, tried int) {
	if current.changed == 0 {
		return current.choice, 0
	}
	few := *p
	few.most = current.changed // the pairs that must change
	s, _, tried := few.search(opt.effort())
	return s.choice, tried
}

// search returns the best choices found with an effort, why it went no further, and how many paths
// were tried for that and for a proof, which comes on top of the effort.
func (p *problem) search(effort int) (s *search, stopped Stop, tried int) {
	s = p.begin(effort)
	proof := 0
	if len(p.pairs) <= maxProved {
		best, proved, tried := p.exact(s.choice, effort/proofShare)
		if proof = tried; proved {
			s.takeAll(best)
			return s, Optimal, s.tried + proof
		}
	}
	s.explore()
	if stopped = EffortUsed; s.atBound() {
		stopped = AtBound
	}
	return s, stopped, s.tried + proof
}

// plan returns the current plan with some changes.
func (p *problem) plan(changes []plan.Change) *plan.Plan {
	vids := make(map[plan.Pair]transport.VID)
	for _, c := range changes {
		vids[c.Pair] = c.To
	}
	return p.current.Exchange(vids)
}
