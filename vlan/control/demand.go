package control

import (
	"math"
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// full is the utilisation from which on a link holds flows back: what lies between frames is not counted, and
	// what waits for others cannot fill it.
	full = 0.9
	// large is how large a flow must be, of the largest of a full link, to be held back by it. Flows that share a link are never quite
	// equal; a smaller one is held back elsewhere or wants no more.
	large = 0.5
	// raised is by how much a flow must exceed what it was thought to want at most, for that to be forgotten.
	raised = 1.05
)

// wants finds out what flows want from what has passed.
type demandEstimator struct {
	topology *topology.Topology
	// most is what flows were last seen to send when nothing held them back.
	most map[flowKey]topology.Rate
}

func newDemandEstimator(t *topology.Topology) demandEstimator {
	return demandEstimator{t, make(map[flowKey]topology.Rate)}
}

// estimate returns what is wanted, if passed is what came through by the routes of plan.
func (w *demandEstimator) estimate(passed passage, paths *topology.Paths, plan *plan.Plan) traffic.Matrix {
	keys := make([]flowKey, 0, len(passed.rate))
	for k, rate := range passed.rate {
		if rate > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, flowKey.compare)
	held := w.held(keys, passed, paths, plan)
	w.learn(keys, passed, held)
	wanted := make(traffic.Matrix, len(keys))
	for i, k := range keys {
		wanted[i] = traffic.Flow{From: k.from, To: k.to, Rate: passed.rate[k]}
	}
	if !slices.Contains(held, true) {
		return wanted
	}
	for i, share := range w.natural(keys, passed, held) {
		if held[i] {
			wanted[i].Rate = max(wanted[i].Rate, topology.Rate(share))
		}
	}
	return wanted
}

// held returns which flows a link holds back: those among the largest of one that is full.
func (w *demandEstimator) held(keys []flowKey, passed passage, paths *topology.Paths, plan *plan.Plan) []bool {
	load := make([]topology.Rate, 2*len(w.topology.Links))
	largest := make([]topology.Rate, len(load))
	path := make([][]topology.Hop, len(keys))
	for i, k := range keys {
		path[i], _ = paths.Append(nil, k.from, k.to, plan.PairVID(k.from, k.to)) // without one, it loads nothing
		for _, h := range path[i] {
			load[h.Index()] += passed.rate[k]
			largest[h.Index()] = max(largest[h.Index()], passed.rate[k])
		}
	}
	held := make([]bool, len(keys))
	for i, k := range keys {
		held[i] = slices.ContainsFunc(path[i], func(h topology.Hop) bool {
			return load[h.Index()] >= full*w.topology.Links[h.Link].Rate && passed.rate[k] >= large*largest[h.Index()]
		})
	}
	return held
}

// learn remembers what flows want that nothing holds back. What contradicts it is forgotten: a flow that gets more although it
// is held back, and one that has paused, since another phase of its program begins then.
func (w *demandEstimator) learn(keys []flowKey, passed passage, held []bool) {
	for k := range w.most {
		if passed.rate[k] == 0 && !passed.missing[k.from] {
			delete(w.most, k)
		}
	}
	for i, k := range keys {
		switch most, known := w.most[k]; {
		case !held[i]:
			w.most[k] = passed.rate[k]
		case known && passed.rate[k] > raised*most:
			delete(w.most, k)
		}
	}
}

// natural returns what each flow would get if only the cables of hosts held it back.
func (w *demandEstimator) natural(keys []flowKey, passed passage, held []bool) []float64 {
	flows := make([]sharer, len(keys))
	for i, k := range keys {
		flows[i] = sharer{most: math.Inf(1), places: []int{2 * k.from, 2*k.to + 1}}
		if most, known := w.most[k]; known {
			flows[i].most = float64(most)
		}
		if !held[i] {
			flows[i].most = float64(passed.rate[k])
		}
	}
	cables := make([]float64, 2*len(w.topology.Hosts))
	for h, host := range w.topology.Hosts {
		cables[2*h], cables[2*h+1] = float64(host.Rate), float64(host.Rate)
	}
	return fairShare(flows, cables)
}
