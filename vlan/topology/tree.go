package topology

import (
	"cmp"
	"slices"
	"strings"
)

// tree is a VLAN, seen from a root: so a path is found by climbing from its two ends. Switches that the VLAN does not
// lead to are roots of their own.
type tree struct {
	root   []int32 // of each switch
	Parent []int32 // of each switch: the next one towards its root, or itself
	up     []int32 // of each switch: the hop there, by Hop.Index
	depth  []int32 // of each switch: hops to its root
}

// tree finds the tree of VLAN number i, or returns an ErrInvalid that names a loop. t's parts must be in order.
func (t *Topology) Tree(i int) (*tree, error) {
	n := len(t.Switches)
	slab := make([]int32, 4*n)
	tr := &tree{root: slab[:n:n], Parent: slab[n : 2*n : 2*n], up: slab[2*n : 3*n : 3*n], depth: slab[3*n:]}
	for s := range n {
		tr.root[s], tr.Parent[s], tr.up[s] = -1, int32(s), -1
	}
	next := t.neighbours(t.VLANs[i].Links)
	var queue []int32
	for s := range n {
		if tr.root[s] >= 0 {
			continue
		}
		tr.root[s] = int32(s)
		queue = append(queue[:0], int32(s))
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, hop := range next.of(at) {
				to := int32(t.End(hop))
				switch {
				case tr.up[at] >= 0 && hop.Index() == int(tr.up[at]): // where it came from
				case tr.root[to] >= 0:
					return nil, flawed(vlanList, i, "VLAN %d: loop %s", t.VLANs[i].VID, t.loopName(tr, at, to))
				default:
					tr.root[to], tr.Parent[to], tr.depth[to] = int32(s), at, tr.depth[at]+1
					tr.up[to] = int32(hop.Reverse().Index())
					queue = append(queue, to)
				}
			}
		}
	}
	return tr, nil
}

// loopName names the switches of the loop that a cable between a and b closes.
func (t *Topology) loopName(tr *tree, a, b int32) string {
	left, right := []string{t.Switches[a]}, []string{t.Switches[b]}
	for x, y := a, b; x != y; {
		if tr.depth[x] >= tr.depth[y] {
			x = tr.Parent[x]
			left = append(left, t.Switches[x])
		} else {
			y = tr.Parent[y]
			right = append(right, t.Switches[y])
		}
	}
	for i := len(right) - 2; i >= 0; i-- { // the last one is where the two meet
		left = append(left, right[i])
	}
	return strings.Join(append(left, t.Switches[a]), "-")
}

// adjacency has, for each switch, the hops that leave it.
type adjacency struct {
	hops  []Hop
	first []int32 // of each switch, and the end
}

func (a *adjacency) of(s int32) []Hop { return a.hops[a.first[s]:a.first[s+1]] }

// neighbours returns the hops over some links, ascending for each switch.
func (t *Topology) neighbours(links []int) *adjacency {
	a := &adjacency{hops: make([]Hop, 2*len(links)), first: make([]int32, len(t.Switches)+1)}
	for _, l := range links {
		a.first[t.Links[l].A+1]++
		a.first[t.Links[l].B+1]++
	}
	for s := range t.Switches {
		a.first[s+1] += a.first[s]
	}
	at := append([]int32(nil), a.first...)
	for _, l := range links {
		from, to := t.Links[l].A, t.Links[l].B
		a.hops[at[from]] = Hop{Link: l}
		a.hops[at[to]] = Hop{Link: l, Back: true}
		at[from]++
		at[to]++
	}
	return a
}

// deepestFirst returns the switches so that each comes before its parent.
func (tr *tree) DeepestFirst() []int32 {
	order := make([]int32, len(tr.depth))
	for s := range order {
		order[s] = int32(s)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(tr.depth[b], tr.depth[a]) })
	return order
}

// below returns which switches' ways to the root lead through one.
func (tr *tree) Below(top int32) []bool {
	set := make([]bool, len(tr.Parent))
	for s := range set {
		at := int32(s)
		for tr.depth[at] > tr.depth[top] {
			at = tr.Parent[at]
		}
		set[s] = at == top
	}
	return set
}
