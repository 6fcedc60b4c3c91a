package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// Matrix is a traffic matrix: what each node sends to each other node. It is sorted by From, then
// To, and no two flows have the same ends.
type Matrix []Flow

// Flow is what one node sends to another, on average.
type Flow struct {
	From, To int // nodes
	Rate     topology.Rate
}

// ErrInvalid matches the errors that say what is wrong with a matrix.
var ErrInvalid = errors.New("bad traffic")

// Compare orders flows by sender, then receiver.
func (f Flow) Compare(o Flow) int {
	return cmp.Or(cmp.Compare(f.From, o.From), cmp.Compare(f.To, o.To))
}

// Validate reports what is wrong with m among that many nodes, as ErrInvalid: nodes out of range, a
// node that sends to itself, rates that are not positive, flows out of order or twice (Normalise
// mends that).
func (m Matrix) Validate(nodes int) error {
	for i, f := range m {
		switch {
		case min(f.From, f.To) < 0 || max(f.From, f.To) >= nodes:
			return fmt.Errorf("%w: flow %d>%d: want nodes 0 to %d", ErrInvalid, f.From, f.To, nodes-1)
		case f.From == f.To:
			return fmt.Errorf("%w: flow %d>%d: a node's own messages need no cable", ErrInvalid, f.From, f.To)
		case !f.Rate.Valid():
			return fmt.Errorf("%w: flow %d>%d: rate %v (want more than 0)", ErrInvalid, f.From, f.To, float64(f.Rate))
		case i > 0 && m[i-1].Compare(f) >= 0:
			return fmt.Errorf("%w: flow %d>%d comes after %d>%d (want each once, sorted)",
				ErrInvalid, f.From, f.To, m[i-1].From, m[i-1].To)
		}
	}
	return nil
}

// Normalise returns m sorted, with the flows of the same ends added up, and without those that
// carry nothing. It does not change m.
func (m Matrix) Normalise() Matrix {
	sorted := slices.Clone(m)
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

// Pairs returns the pairs of nodes that m has flows between, ascending.
func (m Matrix) Pairs() []plan.Pair {
	pairs := make([]plan.Pair, len(m))
	for i, f := range m {
		pairs[i] = plan.PairOf(f.From, f.To)
	}
	slices.SortFunc(pairs, plan.Pair.Compare)
	return slices.Compact(pairs)
}
