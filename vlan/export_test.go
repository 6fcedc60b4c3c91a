package vlan

import "math"

// OptimizeExact is Optimize by branch and bound alone, however long it takes: the oracle of the tests.
func OptimizeExact(t *Topology, demand Traffic, current *Plan, opt OptimizeOptions) (*Plan, Report, error) {
	p, err := newProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	known := p.newAssignment()
	known.fromCurrent()
	best, _ := p.exact(known.snapshot(), math.MaxInt)
	return p.plan(best), p.report(best, Optimal, 0), nil
}

// OptimizeFast is Optimize without the proof.
func OptimizeFast(t *Topology, demand Traffic, current *Plan, opt OptimizeOptions) (*Plan, Report, error) {
	p, err := newProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	s := p.begin(opt.effort())
	s.explore()
	return p.plan(s.snapshot()), p.report(s.snapshot(), EffortUsed, s.tried), nil
}
