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
type Problem struct {
	Topology *topology.Topology
	Current  *plan.Plan
	Vids     []transport.VID // choice c is vids[c]
	Pairs    []pairDemand
	inverse  []float64 // by Hop.Index: utilisation per unit
	unit     float64   // bits per second
	most     int       // pairs that may change
	penalty  float64   // for each changed pair, beside the sum of squares
	still    float64   // differences of the sum of squares below this are none
	Bound    float64   // no plan has a lower worst link
}

// pairDemand is a pair that talks across switches.
type pairDemand struct {
	Pair        plan.Pair
	forth, back int64 // units from A to B, and back
	Start       int32 // what current chooses, or noChoice
	// paths has the hops from A to B of each choice, by Hop.Index. Choices that do not connect the pair are nil.
	// Pairs of the same switches share it.
	paths [][]int32
}

// NoChoice is the choice of a pair that has none.
const NoChoice = -1

// NewProblem returns the problem of a traffic in a network.
func NewProblem(t *topology.Topology, demand traffic.Matrix, current *plan.Plan, opt Options) (*Problem, error) {
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
		return nil, fmt.Errorf("%w: nodes: %d, and hosts of the topology: %d (want as many)", plan.ErrInvalid, len(current.Nodes), len(t.Hosts))
	}
	p := &Problem{Topology: t, Current: current, most: opt.maxChanges()}
	if p.Vids = usable(t, current); len(p.Vids) == 0 {
		return nil, fmt.Errorf("%w: none of its VIDs is in the topology", plan.ErrInvalid)
	}
	p.scale(demand)
	if err := p.addPairs(paths, demand, opt.Keep); err != nil {
		return nil, err
	}
	p.Bound = p.lowerBound()
	before := p.NewAssignment()
	before.TakeCurrent()
	if p.most < math.MaxInt {
		p.most += before.changed // those that must
	}
	squares := before.Score().squares
	p.still = squares * tolerance / float64(max(1, len(p.Pairs)))
	p.penalty = opt.PerChange * squares / float64(max(1, len(p.Pairs)))
	return p, nil
}

// cyclicPlan is the plan that a network begins with. Source: VFREC §2.3.
func roundRobin(t *topology.Topology) *plan.Plan {
	pl := &plan.Plan{VIDs: t.VIDs()}
	for i, h := range t.Hosts {
		node := plan.Node{Name: h.Name}
		if len(pl.VIDs) > 0 {
			node.VID = pl.VIDs[i%len(pl.VIDs)]
		}
		pl.Nodes = append(pl.Nodes, node)
	}
	return pl
}

// usable returns the VIDs that both the topology and the plan have. A plan that lists none has all.
func usable(t *topology.Topology, plan *plan.Plan) []transport.VID {
	if len(plan.VIDs) == 0 {
		return t.VIDs()
	}
	return slices.DeleteFunc(t.VIDs(), func(v transport.VID) bool { return !slices.Contains(plan.VIDs, v) })
}

// scale chooses the unit: a power of two, so that round rates stay exact.
func (p *Problem) scale(demand traffic.Matrix) {
	total := 0.0
	for _, f := range demand {
		total += float64(f.Rate)
	}
	_, exponent := math.Frexp(total)
	p.unit = math.Ldexp(1, exponent-50)
	p.inverse = make([]float64, 2*len(p.Topology.Links))
	for h := range p.inverse {
		p.inverse[h] = p.unit / float64(p.Topology.Links[h/2].Rate)
	}
}

// addPairs finds who talks across switches, and by which paths it could, in ascending order of pairs.
func (p *Problem) addPairs(paths *topology.Paths, demand traffic.Matrix, keep func(plan.Pair) bool) error {
	at := make([]int, len(p.Topology.Hosts)) // by the higher node of a pair: where the pair is, plus 1
	for _, flows := range p.byLowerNode(demand) {
		first := len(p.Pairs)
		for _, f := range flows {
			pair := plan.PairOf(f.From, f.To)
			if at[pair.B] == 0 {
				p.Pairs = append(p.Pairs, pairDemand{Pair: pair})
				at[pair.B] = len(p.Pairs)
			}
			c := &p.Pairs[at[pair.B]-1]
			if units := int64(math.Round(float64(f.Rate) / p.unit)); f.From == pair.A {
				c.forth = units
			} else {
				c.back = units
			}
		}
		for _, f := range flows {
			at[max(f.From, f.To)] = 0
		}
		slices.SortFunc(p.Pairs[first:], func(a, b pairDemand) int { return cmp.Compare(a.Pair.B, b.Pair.B) })
	}
	table := pathTable{paths: paths, vids: p.Vids, rows: map[[2]int][][]int32{}}
	for i := range p.Pairs {
		if err := p.connect(&p.Pairs[i], &table, keep); err != nil {
			return err
		}
	}
	return nil
}

// byLowerNode returns the flows that cross switches, by the lower node of their pairs, and in their order.
func (p *Problem) byLowerNode(demand traffic.Matrix) [][]traffic.Flow {
	crosses := func(f *traffic.Flow) bool { return p.Topology.Hosts[f.From].Switch != p.Topology.Hosts[f.To].Switch }
	begin := make([]int, len(p.Topology.Hosts)+1)
	for i := range demand {
		if f := &demand[i]; crosses(f) {
			begin[min(f.From, f.To)+1]++
		}
	}
	for node := range p.Topology.Hosts {
		begin[node+1] += begin[node]
	}
	all := make([]traffic.Flow, begin[len(begin)-1])
	next := slices.Clone(begin)
	for i := range demand {
		if f := &demand[i]; crosses(f) {
			lower := min(f.From, f.To)
			all[next[lower]] = *f
			next[lower]++
		}
	}
	by := make([][]traffic.Flow, len(p.Topology.Hosts))
	for node := range by {
		by[node] = all[begin[node]:begin[node+1]]
	}
	return by
}

// connect gives a pair its paths, and its choice in the current plan.
func (p *Problem) connect(c *pairDemand, table *pathTable, keep func(plan.Pair) bool) error {
	var err error
	if c.paths, err = table.of(c.Pair); err != nil {
		return err
	}
	vid := p.Current.PairVID(c.Pair.A, c.Pair.B)
	c.Start = int32(slices.Index(p.Vids, vid))
	if c.Start >= 0 && c.paths[c.Start] == nil {
		c.Start = NoChoice
	}
	if c.Start >= 0 && keep != nil && keep(c.Pair) {
		only := make([][]int32, len(c.paths))
		only[c.Start] = c.paths[c.Start]
		c.paths = only
	}
	return nil
}

// pathTable finds the paths between two switches once.
type pathTable struct {
	paths *topology.Paths
	vids  []transport.VID
	rows  map[[2]int][][]int32
	key   [2]int    // that was asked for last: pairs come in an order in which it often is the same
	row   [][]int32 // its, or nil
	hops  int       // in all rows
	buf   []topology.Hop
}

// of returns the paths of a pair by each choice.
func (t *pathTable) of(pair plan.Pair) ([][]int32, error) {
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
		return nil, fmt.Errorf("%w: the paths of these pairs have more than %d hops (optimise a part of the network)", traffic.ErrInvalid, maxPathTable)
	}
	t.rows[key], t.key, t.row = row, key, row
	return row, nil
}
