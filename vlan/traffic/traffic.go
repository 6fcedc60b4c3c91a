package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// ErrInvalid is what all errors are that say what is wrong with a traffic.
var ErrInvalid = errors.New("bad traffic")

// Flow is what one node sends to another, on average.
type Flow struct {
	From, To int // nodes
	Rate     topology.Rate
}

// Traffic is who sends how much to whom, sorted by From, then To; no two flows have the same ends.
type Matrix []Flow

// Compare orders flows by sender, then receiver.
func (f Flow) Compare(o Flow) int {
	return cmp.Or(cmp.Compare(f.From, o.From), cmp.Compare(f.To, o.To))
}

// Validate reports what is wrong with t among that many nodes, as an ErrInvalid: nodes out of range, a node that sends
// to itself, rates that are not positive, flows out of order or twice (Normalise mends that).
func (t Matrix) Validate(nodes int) error {
	for i, f := range t {
		switch {
		case f.From < 0 || f.To < 0 || f.From >= nodes || f.To >= nodes:
			return fmt.Errorf("%w: flow %d>%d: want nodes 0 to %d", ErrInvalid, f.From, f.To, nodes-1)
		case f.From == f.To:
			return fmt.Errorf("%w: flow %d>%d: a node's own messages need no cable", ErrInvalid, f.From, f.To)
		case !f.Rate.Valid():
			return fmt.Errorf("%w: flow %d>%d: rate %v (want more than 0)", ErrInvalid, f.From, f.To, float64(f.Rate))
		case i > 0 && t[i-1].Compare(f) >= 0:
			return fmt.Errorf("%w: flow %d>%d comes after %d>%d (want each once, sorted)", ErrInvalid, f.From, f.To, t[i-1].From, t[i-1].To)
		}
	}
	return nil
}

// Normalise returns t sorted, with the flows of the same ends added up, and those left out that carry nothing. It does not
// change t.
func (t Matrix) Normalise() Matrix {
	sorted := slices.Clone(t)
	slices.SortStableFunc(sorted, Flow.Compare)
	merged := sorted[:0]
	for _, f := range sorted {
		if last := len(merged) - 1; last >= 0 && merged[last].Compare(f) == 0 {
			merged[last].Rate += f.Rate
		} else {
			merged = append(merged, f)
		}
	}
	return slices.DeleteFunc(merged, func(f Flow) bool { return f.Rate == 0 })
}

// Matrix returns t as a table: row From, column To. All nodes of t must be below nodes.
func (t Matrix) Dense(nodes int) [][]topology.Rate {
	m := make([][]topology.Rate, nodes)
	for i := range m {
		m[i] = make([]topology.Rate, nodes)
	}
	for _, f := range t {
		m[f.From][f.To] += f.Rate
	}
	return m
}

// FromDense returns the traffic that a table says: row From, column To. Zeros are no flows.
func FromDense(matrix [][]topology.Rate) Matrix {
	var t Matrix
	for from, row := range matrix {
		for to, rate := range row {
			if rate != 0 {
				t = append(t, Flow{from, to, rate})
			}
		}
	}
	return t
}

// Pairs returns the pairs of nodes that t has flows between, ascending.
func (t Matrix) Pairs() []plan.Pair {
	pairs := make([]plan.Pair, len(t))
	for i, f := range t {
		pairs[i] = plan.PairOf(f.From, f.To)
	}
	slices.SortFunc(pairs, plan.Pair.Compare)
	return slices.Compact(pairs)
}
