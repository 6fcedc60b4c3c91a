package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// Plan says which VID each pair of nodes uses, in a size that grows with the nodes and not with the
// pairs: a pair uses the default VID of its node with priority. Exceptions are listed one by one.
//
// A plan is data. A plan made by hand needs Validate; the other functions expect a valid plan.
//
// Source: VFREC §2.3.
type Plan struct {
	// Topology names the network that the plan is for: a spec, such as vbft:4x4x4, or a file. It
	// may be empty.
	Topology string
	// VIDs are those that may be used. Every node receives all of them, always.
	VIDs  []transport.VID
	PCP   transport.PCP // of all frames
	Nodes []Node
	// Pairs holds the exceptions.
	Pairs map[Pair]transport.VID
}

// Node is a node of a plan. Its number is its place in Plan.Nodes.
type Node struct {
	Name string        `json:"name,omitempty"` // may be empty
	MAC  transport.MAC `json:"mac"`
	// VID is the node's default: for frames to addresses that the plan does not list, groups among
	// them, and for its pairs in which it has priority.
	VID transport.VID `json:"vid"`
	// Priority decides whose default a pair uses: the node with the higher one; of equals, the
	// lower number.
	Priority int `json:"priority,omitempty"`
}

// ErrUnknownNode matches the errors of nodes that a plan does not list.
var ErrUnknownNode = errors.New("unknown node")

// RoundRobin returns the plan to begin with: nodes take the VIDs in turn, and of two nodes the
// lower one has priority. So each VID is the default of nearly as many nodes. The error is
// ErrInvalid.
//
// Source: VFREC §2.3.
func RoundRobin(macs []transport.MAC, vids []transport.VID) (*Plan, error) {
	p := &Plan{VIDs: slices.Clone(vids)}
	for i, mac := range macs {
		n := Node{MAC: mac}
		if len(vids) > 0 {
			n.VID = vids[i%len(vids)]
		}
		p.Nodes = append(p.Nodes, n)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// PairVID returns the VID of two nodes by number, in either order.
func (p *Plan) PairVID(a, b int) transport.VID {
	if vid, listed := p.Pairs[PairOf(a, b)]; listed {
		return vid
	}
	return p.defaultVID(a, b)
}

// defaultVID is PairVID, exceptions aside.
func (p *Plan) defaultVID(a, b int) transport.VID { return p.Nodes[p.Decider(a, b)].VID }

// Decider returns which of two nodes has priority: its default is the pair's VID, exceptions aside.
func (p *Plan) Decider(a, b int) int {
	a, b = min(a, b), max(a, b)
	if p.Nodes[b].Priority > p.Nodes[a].Priority {
		return b
	}
	return a
}

// VID returns the VID between two addresses, in either order. If the plan lists only one of them,
// it is that node's default. Errors: ErrUnknownNode if it lists neither; both addresses are one
// node. It searches all nodes.
func (p *Plan) VID(a, b transport.MAC) (transport.VID, error) {
	i, okA := p.NodeOf(a)
	j, okB := p.NodeOf(b)
	switch {
	case okA && okB && i == j:
		return 0, fmt.Errorf("VID of %v and itself: there is none (want two nodes)", a)
	case okA && okB:
		return p.PairVID(i, j), nil
	case okA:
		return p.Nodes[i].VID, nil
	case okB:
		return p.Nodes[j].VID, nil
	}
	return 0, fmt.Errorf("VID of %v and %v: %w (want one of the plan's %d nodes at least)",
		a, b, ErrUnknownNode, len(p.Nodes))
}

// NodeOf returns the number of the node with an address.
func (p *Plan) NodeOf(mac transport.MAC) (node int, ok bool) {
	node = slices.IndexFunc(p.Nodes, func(n Node) bool { return n.MAC == mac })
	return node, node >= 0
}

// FindNode returns the number of the node with a number, name or address. The error is
// ErrUnknownNode.
func (p *Plan) FindNode(text string) (node int, err error) {
	if node, err := strconv.ParseUint(text, 10, 31); err == nil && int(node) < len(p.Nodes) {
		return int(node), nil
	}
	mac, err := transport.ParseMAC(text)
	for i, n := range p.Nodes {
		if text != "" && n.Name == text || err == nil && n.MAC == mac {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w %q (want a number of 0 to %d, or a name or address that the plan lists)",
		ErrUnknownNode, text, len(p.Nodes)-1)
}

// Routes returns what a node's table holds: a route to each other node, in their order, and then
// the default.
func (p *Plan) Routes(node int) []vlan.Route {
	routes := make([]vlan.Route, 0, len(p.Nodes))
	add := func(dst transport.MAC, vid transport.VID) {
		tag := transport.Tagged(transport.Tag{VID: vid, PCP: p.PCP})
		routes = append(routes, vlan.Route{Dst: dst, OptionalTag: tag})
	}
	for other, n := range p.Nodes {
		if other != node {
			add(n.MAC, p.PairVID(node, other))
		}
	}
	add(transport.Broadcast, p.Nodes[node].VID)
	return routes
}

// With returns a plan in which the given pairs use the given VIDs, and the others what they use in
// p. Pairs that use the default are not among its exceptions, even if they were in p. The error is
// ErrInvalid: for pairs or VIDs that p does not have.
func (p *Plan) With(changes map[Pair]transport.VID) (*Plan, error) {
	if err := p.validatePairs(changes); err != nil {
		return nil, err
	}
	n := p.Exchange(changes)
	if err := n.validatePairs(nil); err != nil { // there may be too many now
		return nil, err
	}
	return n, nil
}

// Exchange is With for changes that are known to be valid.
func (p *Plan) Exchange(changes map[Pair]transport.VID) *Plan {
	n := *p
	n.VIDs, n.Nodes = slices.Clone(p.VIDs), slices.Clone(p.Nodes)
	n.Pairs = make(map[Pair]transport.VID, len(p.Pairs)+len(changes))
	maps.Copy(n.Pairs, p.Pairs)
	maps.Copy(n.Pairs, changes)
	maps.DeleteFunc(n.Pairs, func(pair Pair, vid transport.VID) bool { return n.defaultVID(pair.A, pair.B) == vid })
	return &n
}
