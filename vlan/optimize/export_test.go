package optimize

import (
	"math"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// PlanExact is Plan by branch and bound alone, however long it takes: the oracle of the tests.
func PlanExact(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*plan.Plan, Report, error) {
	p, err := newProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	known := p.newAssignment()
	known.fromCurrent()
	best, _, tried := p.exact(known.choice, math.MaxInt)
	return p.plan(p.changes(best)), p.report(best, Optimal, tried), nil
}

// PlanFast is Plan without the proof.
func PlanFast(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*plan.Plan, Report, error) {
	p, err := newProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	s := p.begin(opt.effort())
	s.explore()
	return p.plan(p.changes(s.choice)), p.report(s.choice, EffortUsed, s.tried), nil
}

// Looks returns how many views and cuts Plan looks at, at most.
func Looks(t *topology.Topology, demand traffic.Matrix) (views, cuts int, err error) {
	p, err := newProblem(t, demand, nil, Options{})
	if err != nil {
		return 0, 0, err
	}
	for range p.cuts {
		cuts++
	}
	return len(p.views()), cuts, nil
}
