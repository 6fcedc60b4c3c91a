package topology

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Level is a level of switches in a fat tree.
type Level struct {
	// Down is how many of the level below each switch leads to: hosts, for the lowest.
	Down int
	// Up is how many switches of this level each one of the level below is connected to. Hosts have one cable:
	// the lowest level's Up is 1.
	Up int
}

// Flat returns one switch with all hosts, and VID 1. Its cables have 1 Gbit/s.
//
// Source: VFREC §5, figure 8(a).
func Flat(hosts int) (*Topology, error) { return Tree(hosts) }

// Tree returns a tree of switches with the given numbers of branches, from the root down; the last one counts the hosts
// at each leaf. Tree(4, 4) is four switches of four hosts below a fifth one. Its one VLAN is VID 1. Its cables have
// 1 Gbit/s, on all levels.
//
// Source: VFREC §5, figure 8(b).
func Tree(branches ...int) (*Topology, error) {
	levels := make([]Level, len(branches))
	for i, n := range branches {
		levels[len(branches)-1-i] = Level{Down: n, Up: 1}
	}
	return FatTreeOf(levels...)
}

// FatTree returns the VLAN-based fat tree of two levels (VBFT): each leaf switch has a cable to each top switch, and VID
// i+1 is the tree of all cables of top switch i. Switches are numbered leaves first; link leaf*tops+top goes from the
// leaf (A) to the top (B); hosts are numbered leaf by leaf. Its cables have 1 Gbit/s.
//
//	 top 0    top 1          FatTree(3, 2, 2): 3 leaves, 2 tops, 2 hosts per leaf
//	 / | \    / | \
//	leaf 0   leaf 1   leaf 2         VID 1: by way of top 0
//	 |  |     |  |     |  |          VID 2: by way of top 1
//	 0  1     2  3     4  5
//
// Source: VFREC §2.2, figure 2: FatTree(4, 4, 4).
func FatTree(leaves, tops, hostsPerLeaf int) (*Topology, error) {
	return FatTreeOf(Level{Down: hostsPerLeaf, Up: 1}, Level{Down: leaves, Up: tops})
}

// FatTreeOf returns a VLAN-based fat tree of any number of levels, the lowest first. There is a VID for each switch of
// the highest level: the product of all Up. A VID's tree goes down from that switch to all others; there is one way down.
//
// With three levels, (H, 1), (L, T), (P, C), there are P pods of L leaves and T middle switches, with H hosts at each
// leaf; each leaf of a pod is connected to its T middle switches, and middle switch i of each pod to top
// switches i*C to i*C+C-1. The cables have 1 Gbit/s.
//
// Source: VFREC §2.2; with more levels these are the extended generalised fat trees of Öhring et al., IPPS 1995.
func FatTreeOf(levels ...Level) (*Topology, error) {
	g, err := newGrowth(levels)
	if err != nil {
		return nil, err
	}
	g.switches()
	g.hosts()
	for level := 1; level < len(levels); level++ {
		g.links(level)
	}
	return g.t, nil
}

// growth builds a fat tree.
//
// A switch of level i has a number x that says which subtree it is in, and a number y that says which of the subtree's
// roots it is. One with (x, y) is below those of level i+1 with (x/Down, y*Up+u), for u from 0 to Up-1. So all below top
// switch y are those whose y is a prefix of its own: that is its VLAN.
type growth struct {
	levels []Level
	trees  []int // of each level: how many subtrees there are
	roots  []int // of each level: how many roots each subtree has
	first  []int // of each level: its first switch
	t      *Topology
}

func newGrowth(levels []Level) (*growth, error) {
	if len(levels) == 0 {
		return nil, fmt.Errorf("%w: no level (want one at least)", ErrInvalid)
	}
	for i, l := range levels {
		if l.Down < 1 || l.Up < 1 {
			return nil, fmt.Errorf("%w: level %d: %d down, %d up (want 1 at least)", ErrInvalid, i, l.Down, l.Up)
		}
	}
	if levels[0].Up != 1 {
		return nil, fmt.Errorf("%w: %d cables of each host (want 1)", ErrInvalid, levels[0].Up)
	}
	n := len(levels)
	g := &growth{levels: levels, trees: make([]int, n), roots: make([]int, n), first: make([]int, n)}
	return g, g.measure()
}

// measure finds how many trees and roots there are, or returns an ErrInvalid if they are too many.
func (g *growth) measure() error {
	top := len(g.levels) - 1
	g.trees[top] = 1
	for i := top - 1; i >= 0; i-- {
		if g.levels[i+1].Down > maxParts/g.trees[i+1] {
			return tooLarge("leaf switches", maxParts)
		}
		g.trees[i] = g.trees[i+1] * g.levels[i+1].Down
	}
	if g.levels[0].Down > maxParts/g.trees[0] {
		return tooLarge("hosts", maxParts)
	}
	tops := 1
	for i, l := range g.levels {
		if l.Up > int(transport.MaxVID)/tops {
			return tooLarge("top switches, one for each VID", int(transport.MaxVID))
		}
		tops *= l.Up
		g.roots[i] = tops
	}
	var switches, links, members int64
	for i := range g.levels {
		switches += product(g.trees[i], g.roots[i])
		if i < top {
			links += product(g.trees[i], g.roots[i+1])
			members += product(g.trees[i], tops)
		}
	}
	switch {
	case switches > maxParts:
		return tooLarge("switches", maxParts)
	case links > maxParts:
		return tooLarge("links", maxParts)
	case members > maxMembers:
		return tooLarge("links in all VLANs together", maxMembers)
	}
	return nil
}

func product(a, b int) int64 { return int64(a) * int64(b) }

func tooLarge(what string, most int) error {
	return fmt.Errorf("%w: too large: more than %d %s", ErrInvalid, most, what)
}

func (g *growth) switches() {
	g.t = &Topology{}
	for level := range g.levels {
		g.first[level] = len(g.t.Switches)
		for i := range g.trees[level] * g.roots[level] {
			g.t.Switches = append(g.t.Switches, fmt.Sprintf("%s%d", g.levelName(level), i))
		}
	}
	for y := range g.roots[len(g.levels)-1] {
		g.t.VLANs = append(g.t.VLANs, VLAN{VID: transport.VID(y + 1)})
	}
}

// levelName is what switches of a level are called.
func (g *growth) levelName(level int) string {
	switch {
	case level == 0:
		return "leaf"
	case level == len(g.levels)-1:
		return "top"
	case len(g.levels) == 3:
		return "mid"
	}
	return fmt.Sprintf("mid%d.", level)
}

func (g *growth) hosts() {
	perLeaf := g.levels[0].Down
	for i := range g.trees[0] * perLeaf {
		g.t.Hosts = append(g.t.Hosts, Host{Name: fmt.Sprintf("node%d", i), Switch: i / perLeaf, Rate: Gbps})
	}
}

// links connects the switches of a level to those below, and puts the cables into their VLANs.
func (g *growth) links(level int) {
	up := g.levels[level].Up
	tops := len(g.t.VLANs) / g.roots[level] // how many are above each switch of the level
	for x := range g.trees[level-1] {
		for y := range g.roots[level-1] {
			for u := range up {
				root := y*up + u
				for v := range tops {
					vlan := &g.t.VLANs[root*tops+v]
					vlan.Links = append(vlan.Links, len(g.t.Links))
				}
				g.t.Links = append(g.t.Links, Link{
					A:    g.first[level-1] + x*g.roots[level-1] + y,
					B:    g.first[level] + x/g.levels[level].Down*g.roots[level] + root,
					Rate: Gbps,
				})
			}
		}
	}
}
