package control

import (
	"math"
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// full is the utilisation from which on a link holds flows back: the gaps between frames are
	// not counted, and flows that wait for others cannot fill a link.
	full = 0.9
	// large is the size, as part of the largest flow of a full link, from which on a flow is held
	// back by it. Flows that share a link are never quite equal; a smaller one is held back
	// elsewhere or has no demand.
	large = 0.5
	// raised is the factor by which a flow must exceed its known demand for that to be forgotten.
	raised = 1.05
)

// demandEstimator estimates the demand of flows from what passed.
type demandEstimator struct {
	topology *topology.Topology
	// known is the rate at which flows were last seen when nothing held them back. Its Rate is
	// that; the key has none.
	known map[traffic.Flow]topology.Rate
}

func newDemandEstimator(t *topology.Topology) demandEstimator {
	return demandEstimator{t, make(map[traffic.Flow]topology.Rate)}
}

// ends is a flow without its rate: the key of what is known of it.
func ends(f traffic.Flow) traffic.Flow { return traffic.Flow{From: f.From, To: f.To} }

// estimate returns the demand, if seen is what came through by the routes of the plan.
func (e *demandEstimator) estimate(seen observation, paths *topology.Paths, p *plan.Plan) traffic.Matrix {
	held := e.held(seen.flows, paths, p)
	e.learn(seen, held)
	demand := slices.Clone(seen.flows)
	if !slices.Contains(held, true) {
		return demand
	}
	for i, share := range e.natural(seen.flows) {
		if held[i] {
			demand[i].Rate = max(demand[i].Rate, topology.Rate(share))
		}
	}
	return demand
}

// held returns which flows a link holds back: those among the largest of a full link.
func (e *demandEstimator) held(flows traffic.Matrix, paths *topology.Paths, p *plan.Plan) []bool {
	load := make([]topology.Rate, 2*len(e.topology.Links))
	largest := make([]topology.Rate, len(load))
	path := make([][]topology.Hop, len(flows))
	for i, f := range flows {
		path[i], _ = paths.Append(nil, f.From, f.To, p.PairVID(f.From, f.To)) // without one, it loads nothing
		for _, h := range path[i] {
			load[h.Index()] += f.Rate
			largest[h.Index()] = max(largest[h.Index()], f.Rate)
		}
	}
	held := make([]bool, len(flows))
	for i, f := range flows {
		held[i] = slices.ContainsFunc(path[i], func(h topology.Hop) bool {
			return load[h.Index()] >= full*e.topology.Links[h.Link].Rate && f.Rate >= large*largest[h.Index()]
		})
	}
	return held
}

// learn remembers the demand of flows that nothing holds back. It forgets what the observation
// contradicts: a flow that gets more although it is held back, and one that has paused, since
// another phase of its program begins then.
func (e *demandEstimator) learn(seen observation, held []bool) {
	for k := range e.known {
		if !seen.missing[k.From] && seen.rate(k) == 0 {
			delete(e.known, k)
		}
	}
	for i, f := range seen.flows {
		switch known, ok := e.known[ends(f)]; {
		case !held[i]:
			e.known[ends(f)] = f.Rate
		case ok && f.Rate > raised*known:
			delete(e.known, ends(f))
		}
	}
}

// natural returns what each flow would get if only the cables of hosts held it back, and none got
// more than its known demand. That of a flow that nothing holds back was learned just now.
func (e *demandEstimator) natural(flows traffic.Matrix) []float64 {
	sharers := make([]sharer, len(flows))
	for i, f := range flows {
		s := sharer{most: math.Inf(1), places: []int{2 * f.From, 2*f.To + 1}}
		if known, ok := e.known[ends(f)]; ok {
			s.most = float64(known)
		}
		sharers[i] = s
	}
	cables := make([]float64, 2*len(e.topology.Hosts))
	for h, host := range e.topology.Hosts {
		cables[2*h], cables[2*h+1] = float64(host.Rate), float64(host.Rate)
	}
	return fairShare(sharers, cables)
}
