package optimize

import (
	"math"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

// OptimizeExact is Optimize by branch and bound alone, however long it takes: the oracle of the tests.
func OptimizeExact(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*plan.Plan, Report, error) {
	p, err := NewProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	known := p.NewAssignment()
	known.fromCurrent()
	best, _ := p.exact(known.snapshot(), math.MaxInt)
	return p.Plan(best), p.report(best, Optimal, 0), nil
}

// OptimizeFast is Optimize without the proof.
func OptimizeFast(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*plan.Plan, Report, error) {
	p, err := NewProblem(t, demand, current, opt)
	if err != nil {
		return nil, Report{}, err
	}
	best := p.Search(opt.effort())
	return p.Plan(best), p.report(best, EffortUsed, 0), nil
}

// Colour colours edges between vertices so that few of one colour meet: those that go one way, or both ways.
func Colour(edges [][2]int, vertices, colours int, bothWays bool) []int {
	arcs := make([]arc, len(edges))
	all := make([]int, len(edges))
	for i, e := range edges {
		arcs[i], all[i] = arc{e[0], e[1]}, i
	}
	if bothWays {
		orient(arcs, all, vertices)
	}
	return colour(arcs, colours)
}
