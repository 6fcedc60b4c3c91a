package vlan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// maxPathTable bounds the table of all paths that pairs may choose, in hops: 256 MiB.
const maxPathTable = 1 << 26

const (
	// tolerance is the relative difference below which two utilisations are the same. Measured rates are never
	// better than that, and it keeps the search from living on rounding.
	tolerance = 1e-9
	// near is how close to its lower bound the worst link must be to end the search.
	near = 1e-3
)

// problem is what Optimize decides, in numbers: which of its paths each pair takes.
//
// Loads are whole numbers, of units so small that all demand together is some 2^50: what is added can be taken away
// again without a trace of rounding, in any order.
type problem struct {
	topology *Topology
	current  *Plan
	vids     []transport.VID // choice c is vids[c]
	pairs    []contender
	inverse  []float64 // by Hop.Index: utilisation per unit
	unit     float64   // bits per second
	most     int       // pairs that may change
	penalty  float64   // for each changed pair, beside the sum of squares
	still    float64   // differences of the sum of squares below this are none
	bound    float64   // no plan has a lower worst link
}

// contender is a pair that talks across switches.
type contender struct {
	pair        Pair
	forth, back int64 // units from A to B, and back
	start       int32 // what current chooses, or noChoice
	// paths has the hops from A to B of each choice, by Hop.Index. Choices that do not connect the pair are nil.
	// Pairs of the same switches share it.
	paths [][]int32
}

const noChoice = -1

func newProblem(t *Topology, demand Traffic, current *Plan, opt OptimizeOptions) (*problem, error) {
	paths, err := NewPaths(t)
	if err != nil {
		return nil, err
	}
	if err := demand.Validate(len(t.Hosts)); err != nil {
		return nil, err
	}
	if current == nil {
		current = cyclicPlan(t)
	}
	if len(current.Nodes) != len(t.Hosts) {
		return nil, fmt.Errorf("%w: nodes: %d, and hosts of the topology: %d (want as many)", ErrBadPlan, len(current.Nodes), len(t.Hosts))
	}
	p := &problem{topology: t, current: current, most: opt.maxChanges()}
	if p.vids = usable(t, current); len(p.vids) == 0 {
		return nil, fmt.Errorf("%w: none of its VIDs is in the topology", ErrBadPlan)
	}
	p.scale(demand)
	if err := p.addPairs(paths, demand, opt.Keep); err != nil {
		return nil, err
	}
	p.bound = p.lowerBound()
	before := p.newAssignment()
	before.takeCurrent()
	if p.most < math.MaxInt {
		p.most += before.changed // those that must
	}
	squares := before.score().squares
	p.still = squares * tolerance / float64(max(1, len(p.pairs)))
	p.penalty = opt.PerChange * squares / float64(max(1, len(p.pairs)))
	return p, nil
}

// cyclicPlan is the plan that a network begins with. Source: VFREC §2.3.
func cyclicPlan(t *Topology) *Plan {
	plan := &Plan{VIDs: t.VIDs()}
	for i, h := range t.Hosts {
		node := Station{Name: h.Name}
		if len(plan.VIDs) > 0 {
			node.VID = plan.VIDs[i%len(plan.VIDs)]
		}
		plan.Nodes = append(plan.Nodes, node)
	}
	return plan
}

// usable returns the VIDs that both the topology and the plan have. A plan that lists none has all.
func usable(t *Topology, plan *Plan) []transport.VID {
	if len(plan.VIDs) == 0 {
		return t.VIDs()
	}
	return slices.DeleteFunc(t.VIDs(), func(v transport.VID) bool { return !slices.Contains(plan.VIDs, v) })
}

// scale chooses the unit: a power of two, so that round rates stay exact.
func (p *problem) scale(demand Traffic) {
	total := 0.0
	for _, f := range demand {
		total += float64(f.Rate)
	}
	_, exponent := math.Frexp(total)
	p.unit = math.Ldexp(1, exponent-50)
	p.inverse = make([]float64, 2*len(p.topology.Links))
	for h := range p.inverse {
		p.inverse[h] = p.unit / float64(p.topology.Links[h/2].Rate)
	}
}

// addPairs finds who talks across switches, and by which paths it could, in ascending order of pairs.
func (p *problem) addPairs(paths *Paths, demand Traffic, keep func(Pair) bool) error {
	at := make([]int, len(p.topology.Hosts)) // by the higher node of a pair: where the pair is, plus 1
	for _, flows := range p.byLowerNode(demand) {
		first := len(p.pairs)
		for _, f := range flows {
			pair := PairOf(f.From, f.To)
			if at[pair.B] == 0 {
				p.pairs = append(p.pairs, contender{pair: pair})
				at[pair.B] = len(p.pairs)
			}
			c := &p.pairs[at[pair.B]-1]
			if units := int64(math.Round(float64(f.Rate) / p.unit)); f.From == pair.A {
				c.forth = units
			} else {
				c.back = units
			}
		}
		for _, f := range flows {
			at[max(f.From, f.To)] = 0
		}
		slices.SortFunc(p.pairs[first:], func(a, b contender) int { return cmp.Compare(a.pair.B, b.pair.B) })
	}
	table := pathTable{paths: paths, vids: p.vids, rows: map[[2]int][][]int32{}}
	for i := range p.pairs {
		if err := p.connect(&p.pairs[i], &table, keep); err != nil {
			return err
		}
	}
	return nil
}

// byLowerNode returns the flows that cross switches, by the lower node of their pairs, and in their order.
func (p *problem) byLowerNode(demand Traffic) [][]Flow {
	crosses := func(f *Flow) bool { return p.topology.Hosts[f.From].Switch != p.topology.Hosts[f.To].Switch }
	begin := make([]int, len(p.topology.Hosts)+1)
	for i := range demand {
		if f := &demand[i]; crosses(f) {
			begin[min(f.From, f.To)+1]++
		}
	}
	for node := range p.topology.Hosts {
		begin[node+1] += begin[node]
	}
	all := make([]Flow, begin[len(begin)-1])
	next := slices.Clone(begin)
	for i := range demand {
		if f := &demand[i]; crosses(f) {
			lower := min(f.From, f.To)
			all[next[lower]] = *f
			next[lower]++
		}
	}
	by := make([][]Flow, len(p.topology.Hosts))
	for node := range by {
		by[node] = all[begin[node]:begin[node+1]]
	}
	return by
}

// connect gives a pair its paths, and its choice in the current plan.
func (p *problem) connect(c *contender, table *pathTable, keep func(Pair) bool) error {
	var err error
	if c.paths, err = table.of(c.pair); err != nil {
		return err
	}
	vid := p.current.PairVID(c.pair.A, c.pair.B)
	c.start = int32(slices.Index(p.vids, vid))
	if c.start >= 0 && c.paths[c.start] == nil {
		c.start = noChoice
	}
	if c.start >= 0 && keep != nil && keep(c.pair) {
		only := make([][]int32, len(c.paths))
		only[c.start] = c.paths[c.start]
		c.paths = only
	}
	return nil
}

// pathTable finds the paths between two switches once.
type pathTable struct {
	paths *Paths
	vids  []transport.VID
	rows  map[[2]int][][]int32
	key   [2]int    // that was asked for last: pairs come in an order in which it often is the same
	row   [][]int32 // its, or nil
	hops  int       // in all rows
	buf   []Hop
}

// of returns the paths of a pair by each choice.
func (t *pathTable) of(pair Pair) ([][]int32, error) {
	hosts := t.paths.Topology().Hosts
	key := [2]int{hosts[pair.A].Switch, hosts[pair.B].Switch}
	if key == t.key && t.row != nil {
		return t.row, nil
	}
	if row, ok := t.rows[key]; ok {
		t.key, t.row = key, row
		return row, nil
	}
	row := make([][]int32, len(t.vids))
	var err, lost error
	connected := false
	for c, vid := range t.vids {
		if t.buf, err = t.paths.Append(t.buf[:0], pair.A, pair.B, vid); err != nil {
			lost = err
			continue
		}
		connected = true
		row[c] = make([]int32, len(t.buf))
		for i, h := range t.buf {
			row[c][i] = int32(h.Index())
		}
		t.hops += len(t.buf)
	}
	if !connected {
		return nil, lost
	}
	if t.hops > maxPathTable {
		return nil, fmt.Errorf("%w: the paths of these pairs have more than %d hops (optimise a part of the network)", ErrBadTraffic, maxPathTable)
	}
	t.rows[key], t.key, t.row = row, key, row
	return row, nil
}
