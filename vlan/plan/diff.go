package plan

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// Difference is what changes from one plan to another. Nodes are the same if their addresses are;
// numbers are those of the new plan.
type Difference struct {
	Pairs          []Change     // of nodes that are in both plans, in the order of Pair.Compare
	Defaults       []NodeChange // of nodes that are in both plans
	Added, Removed []Node
	// AddedVIDs may be used from now on, and RemovedVIDs no longer: by programs and failovers, too.
	// Both ascend.
	AddedVIDs, RemovedVIDs []transport.VID
	OldPCP, NewPCP         transport.PCP
}

// Change is another VID for a pair.
type Change struct {
	Pair     Pair
	From, To transport.VID
}

// String formats c as 2-8: VID 3 -> 1.
func (c Change) String() string { return fmt.Sprintf("%v: VID %d -> %d", c.Pair, c.From, c.To) }

// NodeChange is another default VID for a node.
type NodeChange struct {
	Node     int
	Old, New transport.VID
}

// Diff returns what changes from plan a to plan b. It looks at every pair.
func Diff(a, b *Plan) Difference {
	d := Difference{OldPCP: a.PCP, NewPCP: b.PCP}
	d.AddedVIDs, d.RemovedVIDs = without(b.VIDs, a.VIDs), without(a.VIDs, b.VIDs)
	number := make(map[transport.MAC]int, len(a.Nodes)) // in a
	for i, n := range a.Nodes {
		number[n.MAC] = i
	}
	var kept [][2]int // numbers in a and b
	for i, n := range b.Nodes {
		old, ok := number[n.MAC]
		if !ok {
			d.Added = append(d.Added, n)
			continue
		}
		kept = append(kept, [2]int{old, i})
		delete(number, n.MAC)
		if was := a.Nodes[old].VID; was != n.VID {
			d.Defaults = append(d.Defaults, NodeChange{i, was, n.VID})
		}
	}
	for _, n := range a.Nodes {
		if _, only := number[n.MAC]; only {
			d.Removed = append(d.Removed, n)
		}
	}
	for i, low := range kept {
		for _, high := range kept[i+1:] {
			if old, now := a.PairVID(low[0], high[0]), b.PairVID(low[1], high[1]); old != now {
				d.Pairs = append(d.Pairs, Change{Pair{low[1], high[1]}, old, now})
			}
		}
	}
	return d
}

// Empty reports whether nothing changes.
func (d Difference) Empty() bool {
	vids := len(d.AddedVIDs) + len(d.RemovedVIDs)
	return len(d.Pairs)+len(d.Defaults)+len(d.Added)+len(d.Removed)+vids == 0 && d.OldPCP == d.NewPCP
}

// without returns the VIDs that are not among others, ascending.
func without(vids, others []transport.VID) []transport.VID {
	listed := func(vid transport.VID) bool { return slices.Contains(others, vid) }
	return slices.DeleteFunc(slices.Sorted(slices.Values(vids)), listed)
}
