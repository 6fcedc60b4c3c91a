package plan

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Difference is what changes from one plan to another. Nodes are the same if their addresses are; numbers are those of the
// other plan, the new one.
type Difference struct {
	Pairs          []Change     // of nodes that are in both plans, in the order of Pair.Compare
	Defaults       []NodeChange // of nodes that are in both plans
	Added, Removed []Node
	OldPCP, NewPCP transport.PCP
}

// Change is another VID for a pair.
type Change struct {
	Pair     Pair
	From, To transport.VID
}

// String formats c as 2-8: VID 3 -> 1.
func (c Change) String() string { return fmt.Sprintf("%v: VID %d -> %d", c.Pair, c.From, c.To) }

// NodeChange is a node that has another default VID.
type NodeChange struct {
	Node     int
	Old, New transport.VID
}

// Diff returns what changes from plan a to plan b. It looks at every pair.
func Diff(a, b *Plan) Difference {
	d := Difference{OldPCP: a.PCP, NewPCP: b.PCP}
	number := make(map[transport.MAC]int, len(a.Nodes)) // in a
	for i, s := range a.Nodes {
		number[s.MAC] = i
	}
	before := make([]int, len(b.Nodes)) // the number in a, or -1
	for i, s := range b.Nodes {
		old, ok := number[s.MAC]
		if !ok {
			before[i] = -1
			d.Added = append(d.Added, s)
			continue
		}
		before[i] = old
		delete(number, s.MAC)
		if was := a.Nodes[old].VID; was != s.VID {
			d.Defaults = append(d.Defaults, NodeChange{i, was, s.VID})
		}
	}
	for i, s := range a.Nodes {
		if _, only := number[s.MAC]; only {
			d.Removed = append(d.Removed, a.Nodes[i])
		}
	}
	for low := range b.Nodes {
		for high := low + 1; high < len(b.Nodes); high++ {
			if before[low] < 0 || before[high] < 0 {
				continue
			}
			if old, now := a.PairVID(before[low], before[high]), b.PairVID(low, high); old != now {
				d.Pairs = append(d.Pairs, Change{Pair{low, high}, old, now})
			}
		}
	}
	return d
}

// Empty reports whether nothing changes.
func (d Difference) Empty() bool {
	return len(d.Pairs)+len(d.Defaults)+len(d.Added)+len(d.Removed) == 0 && d.OldPCP == d.NewPCP
}
