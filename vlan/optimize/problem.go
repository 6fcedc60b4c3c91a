package optimize

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
	"github.com/rawlane/rawlane/vlan/traffic"
)

const (
	// tolerance is the relative difference below which two utilisations are equal: rates are never
	// measured better than that, and rounding cannot keep the search going.
	tolerance = 1e-9
	// near is the relative distance of the worst link from its lower bound at which the search
	// ends.
	near = 1e-3
	// maxPerChange is a PerChange for which no pair changes for the sum of squares alone. All above
	// is the same: an infinite penalty could not be compared.
	maxPerChange = 1e6
	// maxPathTable bounds the table of all paths that pairs may choose, in hops: 256 MiB.
	maxPathTable = 1 << 26
)

// problem is what Plan decides, in numbers: which of its paths each pair takes.
//
// Loads are whole numbers, of units so small that all demand together is some 2^50: what is added
// can be subtracted again without rounding, in any order.
type problem struct {
	topology *topology.Topology // with the VLANs that pairs may choose
	current  *plan.Plan
	vids     []transport.VID // choice c is vids[c]
	pairs    []pairDemand
	hops     []int32   // that paths of pairs have, by Hop.Index, ascending: no other one carries anything
	inverse  []float64 // by Hop.Index: utilisation per unit
	unit     float64   // bits per second
	most     int       // pairs that may change
	penalty  float64   // for each changed pair, in squares
	still    float64   // differences of the sum of squares below this are none
	bound    float64   // no plan has a lower worst link
}

// pairDemand is a pair that talks across switches.
type pairDemand struct {
	pair        plan.Pair
	forth, back int64 // units from A to B, and back
	start       int32 // the choice of the current plan, or noChoice
	// paths has the hops from A to B of each choice, by Hop.Index. Choices that do not connect the
	// pair are nil, and so are those that Options forbid it. Pairs of the same switches share it if
	// they may choose the same.
	paths [][]int32
}

func (d *pairDemand) both() int64 { return d.forth + d.back }

// noChoice is the choice of a pair that has none.
const noChoice = -1

func newProblem(
	t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options,
) (*problem, error) {
	paths, err := topology.NewPaths(t)
	if err != nil {
		return nil, err
	}
	if err := demand.Validate(len(t.Hosts)); err != nil {
		return nil, err
	}
	if current == nil {
		current = roundRobin(t)
	}
	if len(current.Nodes) != len(t.Hosts) {
		return nil, fmt.Errorf("%w: nodes: %d, and hosts of the topology: %d (want as many)",
			plan.ErrInvalid, len(current.Nodes), len(t.Hosts))
	}
	p := &problem{topology: current.Usable(t), current: current, most: cmp.Or(opt.MaxChanges, math.MaxInt)}
	if p.vids = p.topology.VIDs(); len(p.vids) == 0 {
		return nil, fmt.Errorf("%w: none of its VIDs is in the topology", plan.ErrInvalid)
	}
	if err := p.scale(demand); err != nil {
		return nil, err
	}
	p.addPairs(demand)
	if err := p.connect(paths, opt, maxPathTable); err != nil {
		return nil, err
	}
	p.listHops()
	p.bound = p.lowerBound()
	before := p.newAssignment()
	before.takeCurrent()
	if p.most < math.MaxInt {
		p.most += before.changed // the pairs that must change
	}
	squares := before.score().squares
	p.still = squares * tolerance / float64(max(1, len(p.pairs)))
	p.penalty = min(opt.PerChange, maxPerChange) * squares / float64(max(1, len(p.pairs)))
	return p, nil
}

// roundRobin is the plan that a network begins with: plan.RoundRobin, without addresses.
func roundRobin(t *topology.Topology) *plan.Plan {
	p := &plan.Plan{VIDs: t.VIDs()}
	for i, h := range t.Hosts {
		node := plan.Node{Name: h.Name}
		if len(p.VIDs) > 0 {
			node.VID = p.VIDs[i%len(p.VIDs)]
		}
		p.Nodes = append(p.Nodes, node)
	}
	return p
}

// scale chooses the unit: a power of two, so that round rates stay exact. The error is
// traffic.ErrInvalid, if the squares of all utilisations have no sum, or are too small to tell.
func (p *problem) scale(demand traffic.Matrix) error {
	total := 0.0
	for _, f := range demand {
		total += float64(f.Rate)
	}
	_, exponent := math.Frexp(total)
	p.unit = math.Ldexp(1, exponent-50)
	p.inverse = make([]float64, 2*len(p.topology.Links))
	least, squares := math.Inf(1), 0.0 // if each hop carried all
	for h := range p.inverse {
		p.inverse[h] = p.unit / float64(p.topology.Links[h/2].Rate)
		u := math.Ldexp(p.inverse[h], 50)
		least, squares = min(least, u), squares+u*u
	}
	if total > 0 && (least == 0 || squares > math.MaxFloat64 || math.IsInf(total, 1)) {
		return fmt.Errorf("%w: %g bits per second in all: too much or too little to compare with the cables' rates",
			traffic.ErrInvalid, total)
	}
	return nil
}

// addPairs lists the pairs that talk across switches, ascending. In demand, flows from the lower
// node come in this order. Those from the higher node come in that order for each lower node, so a
// cursor for each node finds their pairs.
func (p *problem) addPairs(demand traffic.Matrix) {
	hosts := p.topology.Hosts
	each := func(back bool, do func(pair plan.Pair, units int64)) {
		for _, f := range demand {
			if f.From > f.To == back && hosts[f.From].Switch != hosts[f.To].Switch {
				do(plan.PairOf(f.From, f.To), int64(math.Round(float64(f.Rate)/p.unit)))
			}
		}
	}
	p.pairs = make([]pairDemand, 0, len(demand))
	cursor := slices.Repeat([]int{len(demand)}, len(hosts)) // by the lower node: the next of its pairs
	each(false, func(pair plan.Pair, units int64) {
		if n := len(p.pairs); n == 0 || p.pairs[n-1].pair.A != pair.A {
			cursor[pair.A] = n
		}
		p.pairs = append(p.pairs, pairDemand{pair: pair, forth: units})
	})
	forth := p.pairs
	each(true, func(pair plan.Pair, units int64) {
		at := &cursor[pair.A]
		for *at < len(forth) && forth[*at].pair.Compare(pair) < 0 {
			*at++
		}
		if *at < len(forth) && forth[*at].pair == pair {
			forth[*at].back = units
		} else { // the lower node sends nothing
			p.pairs = append(p.pairs, pairDemand{pair: pair, back: units})
		}
	})
	if len(p.pairs) > len(forth) {
		slices.SortFunc(p.pairs, func(a, b pairDemand) int { return a.pair.Compare(b.pair) })
	}
}

// connect gives each pair its paths, and its choice in the current plan. All paths together have at
// most as many hops.
func (p *problem) connect(paths *topology.Paths, opt Options, most int) error {
	rows := make(map[[2]int][][]int32) // by the two switches
	parts := make(map[[2]int]map[string][][]int32)
	hops := 0
	for i := range p.pairs {
		d := &p.pairs[i]
		key := [2]int{p.topology.Hosts[d.pair.A].Switch, p.topology.Hosts[d.pair.B].Switch}
		row, known := rows[key]
		if !known {
			var err error
			if row, err = p.pathsOf(paths, d.pair); err != nil {
				return err
			}
			for _, path := range row {
				hops += len(path)
			}
			if hops > most {
				return fmt.Errorf("%w: the paths of these pairs have more than %d hops"+
					" (optimise a part of the network)", traffic.ErrInvalid, most)
			}
			rows[key], parts[key] = row, make(map[string][][]int32)
		}
		d.paths = row
		d.start = int32(slices.Index(p.vids, p.current.PairVID(d.pair.A, d.pair.B)))
		if d.start >= 0 && d.paths[d.start] == nil {
			d.start = noChoice
		}
		p.restrict(d, opt, parts[key])
	}
	return nil
}

// restrict takes the paths from a pair that it must not choose. Parts of the row of all paths
// between its switches, by which of them they have, are shared.
func (p *problem) restrict(d *pairDemand, opt Options, parts map[string][][]int32) {
	isKept := d.start >= 0 && opt.Keep != nil && opt.Keep(d.pair)
	if !isKept && opt.Avoid == nil {
		return
	}
	part, some := make([]byte, len(d.paths)), false
	for c, path := range d.paths {
		if c == int(d.start) || path != nil && !isKept && !opt.Avoid(d.pair, p.vids[c]) {
			part[c], some = 1, true
		}
	}
	if !some {
		return
	}
	row := parts[string(part)]
	if row == nil {
		row = make([][]int32, len(d.paths))
		for c, is := range part {
			if is == 1 {
				row[c] = d.paths[c]
			}
		}
		parts[string(part)] = row
	}
	d.paths = row
}

// pathsOf returns the paths of a pair by each choice. The error is that of the last one if none
// connects the pair.
func (p *problem) pathsOf(paths *topology.Paths, pair plan.Pair) (row [][]int32, err error) {
	row = make([][]int32, len(p.vids))
	var path []topology.Hop
	var cutOff error
	connected := false
	for c, vid := range p.vids {
		if path, err = paths.Append(path[:0], pair.A, pair.B, vid); err != nil {
			cutOff = err
			continue
		}
		connected = true
		row[c] = make([]int32, len(path))
		for i, h := range path {
			row[c][i] = int32(h.Index())
		}
	}
	if !connected {
		return nil, cutOff
	}
	return row, nil
}

// listHops lists the hops that pairs may load. Most of a large network's may stay idle.
func (p *problem) listHops() {
	crossed := make([]bool, len(p.topology.Links))
	for i := range p.pairs {
		for _, path := range p.pairs[i].paths {
			for _, h := range path {
				crossed[h/2] = true
			}
		}
	}
	for l, yes := range crossed {
		if yes {
			p.hops = append(p.hops, int32(2*l), int32(2*l+1))
		}
	}
}

// largestFirst orders pair numbers by the pairs' demand, the largest first.
func (p *problem) largestFirst(pairs []int) []int {
	slices.SortStableFunc(pairs, func(i, j int) int { return cmp.Compare(p.pairs[j].both(), p.pairs[i].both()) })
	return pairs
}
