package topology

import (
	"slices"
	"strings"
)

// tree is a VLAN, seen from a root: a path climbs from its two ends until they meet. Switches that
// the VLAN does not reach are roots of their own.
type tree struct {
	root   []int32 // of each switch
	parent []int32 // of each switch: the next one towards its root, or itself
	up     []int32 // of each switch: the hop there, by Hop.Index
	depth  []int32 // of each switch: hops to its root
}

// tree finds the tree of VLAN number i, or returns an ErrInvalid that names a loop. t's parts must
// be in order.
func (t *Topology) tree(i int) (*tree, error) {
	n := len(t.Switches)
	slab := make([]int32, 4*n)
	tr := &tree{root: slab[:n:n], parent: slab[n : 2*n : 2*n], up: slab[2*n : 3*n : 3*n], depth: slab[3*n:]}
	for s := range n {
		tr.root[s], tr.parent[s], tr.up[s] = -1, int32(s), -1
	}
	next := t.neighbours(t.VLANs[i].Links)
	var queue []int32
	for s := range n {
		if tr.root[s] >= 0 {
			continue
		}
		tr.root[s] = int32(s)
		queue = append(queue[:0], int32(s))
		for k := 0; k < len(queue); k++ {
			at := queue[k]
			for _, hop := range next.of(at) {
				to := int32(t.End(hop))
				switch {
				case tr.up[at] >= 0 && hop.Index() == int(tr.up[at]): // the way back to the root
				case tr.root[to] >= 0:
					return nil, flawed(vlanList, i, "VLAN %d: loop %s", t.VLANs[i].VID, t.loopName(tr, at, to))
				default:
					tr.root[to], tr.parent[to], tr.depth[to] = int32(s), at, tr.depth[at]+1
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
	for a != b {
		if tr.depth[a] >= tr.depth[b] {
			a = tr.parent[a]
			left = append(left, t.Switches[a])
		} else {
			b = tr.parent[b]
			right = append(right, t.Switches[b])
		}
	}
	right = right[:len(right)-1] // both end where the ways meet
	slices.Reverse(right)
	return strings.Join(append(append(left, right...), left[0]), "-")
}

// appendPath appends the hops between two switches of one tree: up to where their ways to the root
// meet, and down.
func (tr *tree) appendPath(dst []Hop, from, to int32) []Hop {
	down := to
	for from != to {
		if tr.depth[from] >= tr.depth[to] {
			dst = append(dst, HopAt(int(tr.up[from])))
			from = tr.parent[from]
		} else {
			to = tr.parent[to]
		}
	}
	begin := len(dst)
	for ; down != from; down = tr.parent[down] {
		dst = append(dst, HopAt(int(tr.up[down])).Reverse())
	}
	slices.Reverse(dst[begin:])
	return dst
}

// Subtrees returns, for each link of a VLAN, the switches on its far side: away from the switch
// with the lowest number in that part of the VLAN. The VLAN must have no loop.
func (t *Topology) Subtrees(v VLAN) [][]int32 {
	next := t.neighbours(v.Links)
	order := make([]int32, 0, len(t.Switches)) // each switch, then those on its far side
	var far [][2]int                           // of each link: begin and end in order
	seen := make([]bool, len(t.Switches))
	var visit func(s int32)
	visit = func(s int32) {
		seen[s] = true
		order = append(order, s)
		for _, hop := range next.of(s) {
			if to := int32(t.End(hop)); !seen[to] {
				begin := len(order)
				visit(to)
				far = append(far, [2]int{begin, len(order)})
			}
		}
	}
	for s := range t.Switches {
		if !seen[s] {
			visit(int32(s))
		}
	}
	all := make([][]int32, len(far))
	for i, f := range far {
		all[i] = order[f[0]:f[1]]
	}
	return all
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
	at := slices.Clone(a.first)
	add := func(s int, h Hop) {
		a.hops[at[s]] = h
		at[s]++
	}
	for _, l := range links {
		add(t.Links[l].A, Hop{Link: l})
		add(t.Links[l].B, Hop{Link: l, Back: true})
	}
	return a
}
