package topology

import (
	"fmt"

	"github.com/rawlane/rawlane/transport"
)

// Flat returns one switch with all hosts, and VID 1. Its cables have 1 Gbit/s.
//
// Source: VFREC §5, figure 8(a).
func Flat(hosts int) (*Topology, error) { return Tree(hosts) }

// Tree returns a tree of switches with the given numbers of branches, from the root down; the last
// number is that of the hosts at each leaf. Tree(4, 4) is four switches of four hosts below a fifth
// one. Its one VLAN is VID 1. Its cables have 1 Gbit/s, on all levels.
//
// Source: VFREC §5, figure 8(b).
func Tree(branches ...int) (*Topology, error) {
	levels := make([]Level, len(branches))
	for i, n := range branches {
		levels[len(branches)-1-i] = Level{Down: n, Up: 1}
	}
	return FatTreeOf(levels...)
}

// FatTree returns the VLAN-based fat tree of two levels (VBFT): each leaf switch has a cable to
// each top switch, and VID i+1 is the tree of all cables of top switch i. Switches are numbered
// leaves first; link leaf*tops+top goes from the leaf (A) to the top (B); hosts are numbered leaf
// by leaf. Its cables have 1 Gbit/s.
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

// Level is a level of switches in a fat tree.
type Level struct {
	// Down is the number of switches of the level below that each switch leads to: hosts, for the
	// lowest.
	Down int
	// Up is the number of switches of this level that each switch of the level below is connected
	// to. Hosts have one cable: the lowest level's Up is 1.
	Up int
}

// FatTreeOf returns a VLAN-based fat tree of any number of levels, the lowest first. There is a VID
// for each switch of the highest level: the product of all Up. A VID's tree goes down from that
// switch to all others; there is one way down.
//
// With three levels, (H, 1), (L, T), (P, C), there are P pods of L leaves and T middle switches,
// with H hosts at each leaf; each leaf of a pod is connected to its T middle switches, and middle
// switch i of each pod to top switches i*C to i*C+C-1. The cables have 1 Gbit/s.
//
// Source: VFREC §2.2; with more levels these are the extended generalised fat trees of Öhring et
// al., IPPS 1995.
func FatTreeOf(levels ...Level) (*Topology, error) {
	b, err := newBuilder(levels)
	if err != nil {
		return nil, err
	}
	b.switches()
	b.hosts()
	for level := 1; level < len(levels); level++ {
		b.links(level)
	}
	return b.t, nil
}

// builder builds a fat tree.
//
// A switch has a number x of its subtree, and a number y among the subtree's roots. Switch (x, y)
// of level i is below those of level i+1 with (x/Down, y*Up+u), for u from 0 to Up-1. So all below
// top switch y are those whose y is a prefix of its own: that is its VLAN.
type builder struct {
	levels []Level
	trees  []int // of each level: the number of subtrees
	roots  []int // of each level: the number of roots of each subtree
	first  []int // of each level: its first switch
	t      *Topology
}

func newBuilder(levels []Level) (*builder, error) {
	n := len(levels)
	if n == 0 {
		return nil, invalid("no level (want one at least)")
	}
	for i, l := range levels {
		if l.Down < 1 || l.Up < 1 {
			return nil, invalid("level %d: %d down, %d up (want 1 at least)", i, l.Down, l.Up)
		}
	}
	if levels[0].Up != 1 {
		return nil, invalid("%d cables of each host (want 1)", levels[0].Up)
	}
	b := &builder{levels: levels, trees: make([]int, n), roots: make([]int, n), first: make([]int, n)}
	trees, roots := 1, 1
	for i, l := range levels {
		roots = times(roots, l.Up)
		b.roots[i] = roots
		down := n - 1 - i
		b.trees[down] = trees
		trees = times(trees, levels[down].Down)
	}
	return b, b.checkSizes(trees)
}

// times is the product of two numbers, or more than any bound.
func times(a, b int) int {
	if a > maxMembers/b {
		return maxMembers + 1
	}
	return a * b
}

// checkSizes returns an error if the numbers of switches, hosts or links are too large.
func (b *builder) checkSizes(hosts int) error {
	tops := b.roots[len(b.roots)-1]
	switches, links, members := 0, 0, 0
	for i, trees := range b.trees {
		switches += times(trees, b.roots[i])
		if i+1 < len(b.trees) {
			links += times(trees, b.roots[i+1])
			members += times(trees, tops)
		}
	}
	for _, c := range []struct {
		what    string
		n, most int
	}{
		{"leaf switches", b.trees[0], maxParts},
		{"hosts", hosts, maxParts},
		{"top switches, one for each VID", tops, int(transport.MaxVID)},
		{"switches", switches, maxParts},
		{"links", links, maxParts},
		{"links in all VLANs together", members, maxMembers},
		{reach, switches * tops, maxReach},
	} {
		if c.n > c.most {
			return tooLarge(c.what, c.most)
		}
	}
	return nil
}

func (b *builder) switches() {
	b.t = &Topology{}
	for level := range b.levels {
		b.first[level] = len(b.t.Switches)
		for i := range b.trees[level] * b.roots[level] {
			b.t.Switches = append(b.t.Switches, fmt.Sprintf("%s%d", b.levelName(level), i))
		}
	}
	for y := range b.roots[len(b.levels)-1] {
		b.t.VLANs = append(b.t.VLANs, VLAN{VID: transport.VID(y + 1)})
	}
}

// levelName is the name of a level's switches.
func (b *builder) levelName(level int) string {
	switch {
	case level == 0:
		return "leaf"
	case level == len(b.levels)-1:
		return "top"
	case len(b.levels) == 3:
		return "mid"
	}
	return fmt.Sprintf("mid%d.", level)
}

func (b *builder) hosts() {
	perLeaf := b.levels[0].Down
	for i := range b.trees[0] * perLeaf {
		b.t.Hosts = append(b.t.Hosts, Host{Name: fmt.Sprintf("node%d", i), Switch: i / perLeaf, Rate: Gbps})
	}
}

// links connects the switches of a level to those below, and puts the cables into their VLANs.
func (b *builder) links(level int) {
	up := b.levels[level].Up
	tops := len(b.t.VLANs) / b.roots[level] // above each switch of the level
	for x := range b.trees[level-1] {
		for y := range b.roots[level-1] {
			for u := range up {
				root := y*up + u
				for v := range tops {
					vlan := &b.t.VLANs[root*tops+v]
					vlan.Links = append(vlan.Links, len(b.t.Links))
				}
				b.t.Links = append(b.t.Links, Link{
					A:    b.first[level-1] + x*b.roots[level-1] + y,
					B:    b.first[level] + x/b.levels[level].Down*b.roots[level] + root,
					Rate: Gbps,
				})
			}
		}
	}
}
