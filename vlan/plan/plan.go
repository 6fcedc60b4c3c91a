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

const (
	// MaxNodes bounds a Plan. A pass over all its pairs, as Diff makes, is then 8 million steps.
	MaxNodes = 4096

	// MaxVIDs bounds the VIDs of a Plan: switches that carry more VLANs than this at once are rare.
	MaxVIDs = 1024

	// MaxPairs bounds the exceptions of a Plan: all pairs of 1,024 nodes.
	MaxPairs = 1 << 19

	// MaxFile bounds a plan's file, in bytes: enough for MaxPairs. Reading takes some hundred times that memory at worst.
	MaxFile = 8 << 20

	// MaxPriority bounds the priority of a node, above and below 0.
	MaxPriority = 1_000_000

	// MaxName bounds a node's name, and the name of a topology, in bytes.
	MaxName = 255
)

// Station is a node of a plan. Its number is its place in Plan.Nodes.
type Node struct {
	Name string // may be empty
	MAC  transport.MAC
	// VID is the node's default: what it sends with to addresses that the plan does not list, groups among them, and what
	// its pairs use in which it has priority.
	VID transport.VID
	// Priority decides which of two nodes' defaults their pair uses: the higher one's; of equals, the one
	// with the lower number.
	Priority int
}

// Plan says which VID each pair of nodes uses, in a size that grows with the nodes and not with the pairs: a pair uses the
// default VID of that one of its nodes which has priority. Pairs that should not are listed one by one.
//
// A plan is data; nothing in it changes by itself. Whoever makes one by hand asks Validate; the other functions expect a plan
// that is valid.
//
// Source: VFREC §2.3.
type Plan struct {
	// Topology says what network the plan is for: a generator, such as vbft:4x4x4, or the name of a file. It may be empty.
	Topology string
	// VIDs are those that may be used. Every node receives all of them, always.
	VIDs  []transport.VID
	PCP   transport.PCP // of all frames
	Nodes []Node
	// Pairs holds the exceptions.
	Pairs map[Pair]transport.VID
}

// ErrUnknownNode is matched by the errors of nodes that a plan does not list.
var ErrUnknownNode = errors.New("unknown node")

// RoundRobin returns the plan to begin with: nodes use the VIDs in turn, and of two nodes the lower one has priority. So each
// VID is the default of as many nodes, or nearly. The error is ErrInvalid. Source: VFREC §2.3.
func RoundRobin(macs []transport.MAC, vids []transport.VID) (*Plan, error) {
	p := &Plan{VIDs: slices.Clone(vids)}
	for i, mac := range macs {
		s := Node{MAC: mac}
		if len(vids) > 0 {
			s.VID = vids[i%len(vids)]
		}
		p.Nodes = append(p.Nodes, s)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// PairVID returns the VID of two nodes by number; the order of the two does not matter.
func (p *Plan) PairVID(a, b int) transport.VID {
	if vid, listed := p.Pairs[PairOf(a, b)]; listed {
		return vid
	}
	return p.ruleVID(a, b)
}

// ruleVID is PairVID, exceptions aside.
func (p *Plan) ruleVID(a, b int) transport.VID { return p.Nodes[p.Decider(a, b)].VID }

// Decider returns which of two nodes has priority: its default is the VID of their pair, unless that is an exception.
func (p *Plan) Decider(a, b int) int {
	if a > b {
		a, b = b, a
	}
	if p.Nodes[b].Priority > p.Nodes[a].Priority {
		return b
	}
	return a
}

// VID returns the VID between two addresses, whichever sends. If the plan lists only one of them, it is that one's
// default. The error is ErrUnknownNode if it lists neither, and if both are one node there is none, either. It searches all nodes.
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
	return 0, fmt.Errorf("VID of %v and %v: %w (want one of the plan's %d nodes at least)", a, b, ErrUnknownNode, len(p.Nodes))
}

// NodeOf returns the number of the node with an address.
func (p *Plan) NodeOf(mac transport.MAC) (node int, ok bool) {
	node = slices.IndexFunc(p.Nodes, func(s Node) bool { return s.MAC == mac })
	return node, node >= 0
}

// FindNode returns the number of the node that text means: its number, name or address. The error is ErrUnknownNode.
func (p *Plan) FindNode(text string) (node int, err error) {
	if node, err := strconv.Atoi(text); err == nil && node >= 0 && node < len(p.Nodes) {
		return node, nil
	}
	if node = slices.IndexFunc(p.Nodes, func(s Node) bool { return s.Name != "" && s.Name == text }); node >= 0 {
		return node, nil
	}
	if mac, err := transport.ParseMAC(text); err == nil {
		if node, ok := p.NodeOf(mac); ok {
			return node, nil
		}
	}
	return 0, fmt.Errorf("%w %q (want a number of 0 to %d, or a name or address that the plan lists)", ErrUnknownNode, text, len(p.Nodes)-1)
}

// Routes returns what a node's Table holds: a route to each other node, in their order, and then the default.
func (p *Plan) Routes(node int) []vlan.Route {
	routes := make([]vlan.Route, 0, len(p.Nodes))
	for other, s := range p.Nodes {
		if other != node {
			routes = append(routes, vlan.Route{Dst: s.MAC, OptionalTag: p.tag(p.PairVID(node, other))})
		}
	}
	return append(routes, vlan.Route{Dst: transport.Broadcast, OptionalTag: p.tag(p.Nodes[node].VID)})
}

// tag returns the tag of frames that use a VID.
func (p *Plan) tag(vid transport.VID) transport.OptionalTag {
	return transport.Tagged(transport.Tag{VID: vid, PCP: p.PCP})
}

// With returns a plan in which the given pairs use the given VIDs, and the others what they use in p. Pairs that use what the
// rule says are not among its exceptions, even if they were in p. The error is ErrInvalid: for pairs or VIDs that p does not
// have.
func (p *Plan) With(changes map[Pair]transport.VID) (*Plan, error) {
	n := *p
	n.VIDs, n.Nodes = slices.Clone(p.VIDs), slices.Clone(p.Nodes)
	n.Pairs = make(map[Pair]transport.VID, len(p.Pairs)+len(changes))
	maps.Copy(n.Pairs, p.Pairs)
	maps.Copy(n.Pairs, changes)
	if err := n.validatePairs(changes); err != nil {
		return nil, err
	}
	maps.DeleteFunc(n.Pairs, func(pair Pair, vid transport.VID) bool { return n.ruleVID(pair.A, pair.B) == vid })
	return &n, nil
}

// exchange is With, for changes that are known to be right.
func (p *Plan) Exchange(vids map[Pair]transport.VID) *Plan {
	n := *p
	n.Pairs = make(map[Pair]transport.VID, len(p.Pairs)+len(vids))
	maps.Copy(n.Pairs, p.Pairs)
	maps.Copy(n.Pairs, vids)
	maps.DeleteFunc(n.Pairs, func(pair Pair, vid transport.VID) bool { return n.ruleVID(pair.A, pair.B) == vid })
	return &n
}

func (p *Plan) hasPair(pair Pair) bool {
	return pair.A >= 0 && pair.A < pair.B && pair.B < len(p.Nodes)
}
