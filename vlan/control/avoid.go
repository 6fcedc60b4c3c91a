package control

import (
	"maps"
	"slices"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
)

// DownPath is a path to a node by a VID that carries nothing, or that has not held for long enough
// since.
type DownPath struct {
	Node int
	VID  transport.VID
}

// avoided is what the nodes' failovers tell of a period. Of a pair either end may tell.
type avoided struct {
	down  map[plan.Pair][]transport.VID
	moved map[plan.Pair]bool // a failover has put them on another VID than they prefer
}

// avoidedBy collects what samples, one of each node, tell of failovers.
func avoidedBy(samples map[int]Sample) avoided {
	a := avoided{make(map[plan.Pair][]transport.VID), make(map[plan.Pair]bool)}
	for _, node := range slices.Sorted(maps.Keys(samples)) {
		s := samples[node]
		for _, path := range s.Down {
			pair := plan.PairOf(node, path.Node)
			a.down[pair] = append(a.down[pair], path.VID)
		}
		for _, peer := range s.Moved {
			a.moved[plan.PairOf(node, peer)] = true
		}
	}
	return a
}

// isDown reports whether a VID carries nothing between the nodes of a pair.
func (a *avoided) isDown(p plan.Pair, vid transport.VID) bool { return slices.Contains(a.down[p], vid) }
