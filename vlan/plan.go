package vlan

import "github.com/rawlane/rawlane/transport"

// Station is a node of a plan. Its number is its place in Plan.Nodes.
type Station struct {
	Name string
	MAC  transport.MAC
	// VID is the node's default: what it sends with to nodes that the plan does not list, and what its pairs
	// use in which it has priority.
	VID transport.VID
	// Priority decides which of two nodes' defaults their pair uses: the higher one's; of equals, the one
	// with the lower number.
	Priority int
}

// Plan says which VID each pair of nodes uses, in a size that grows with the nodes and not with the pairs: a pair uses the
// default VID of that one of its nodes which has priority. Pairs that should not are listed one by one.
//
// Source: VFREC §2.3.
type Plan struct {
	// VIDs are those that may be used. Every node receives all of them, always.
	VIDs  []transport.VID
	PCP   transport.PCP // of all frames
	Nodes []Station
	// Pairs holds the exceptions.
	Pairs map[Pair]transport.VID
}

// PairVID returns the VID of two nodes by number; the order of the two does not matter.
func (p *Plan) PairVID(a, b int) transport.VID {
	if vid, ok := p.Pairs[PairOf(a, b)]; ok {
		return vid
	}
	if a > b {
		a, b = b, a
	}
	if p.Nodes[b].Priority > p.Nodes[a].Priority {
		return p.Nodes[b].VID
	}
	return p.Nodes[a].VID
}
