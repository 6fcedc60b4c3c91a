package topology

import (
	"cmp"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
)

// packing puts paths into VLANs.
type packing struct {
	of      []int // of each path: its VLAN, or none
	forests []*forest
	dropped int
}

// none is the VLAN of a path without one.
const none = -1

// better reports whether p holds more paths than q, or as many in fewer VLANs.
func (p *packing) better(q *packing) bool {
	return cmp.Or(cmp.Compare(p.dropped, q.dropped), cmp.Compare(len(p.forests), len(q.forests))) < 0
}

// packBest packs the paths in several orders, and returns the best packing, the first of equals. It
// stops at a packing into atLeast VLANs, which cannot be better.
func (t *Topology) packBest(paths []SwitchPath, atLeast int, opt VLANOptions) *packing {
	order := longestFirst(paths)
	best := t.pack(paths, order, opt.MaxVLANs, len(paths))

	rank := ranks(paths)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	c := prng.Source(opt.Seed)
	for try := 0; try <= opt.Tries && (best.dropped > 0 || len(best.forests) > atLeast); try++ {
		most := opt.MaxVLANs
		if best.dropped == 0 {
			most = len(best.forests) - 1
		}
		if p := t.pack(paths, order, most, best.dropped); p != nil && p.better(best) {
			best = p
		}
		c.Shuffle(order)
	}
	return best
}

// longestFirst returns the numbers of the paths, those of the longest first.
func longestFirst(paths []SwitchPath) []int {
	order := make([]int, len(paths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(paths[b].Hops), len(paths[a].Hops)) })
	return order
}

// ranks returns for each path the number of earlier ones between the same two switches.
func ranks(paths []SwitchPath) []int {
	rank := make([]int, len(paths))
	for i := 1; i < len(paths); i++ {
		if paths[i].From == paths[i-1].From && paths[i].To == paths[i-1].To {
			rank[i] = rank[i-1] + 1
		}
	}
	return rank
}

// pack places the paths in an order, each in a VLAN or in a new one while there may be more. It
// returns nil when it would drop more than it may.
func (t *Topology) pack(paths []SwitchPath, order []int, most, mayDrop int) *packing {
	p := &packing{of: make([]int, len(paths))}
	for _, i := range order {
		at := p.place(paths[i].Hops)
		if at == none && len(p.forests) < most {
			at = len(p.forests)
			p.forests = append(p.forests, newForest(t))
		}
		if p.of[i] = at; at != none {
			p.forests[at].add(paths[i].Hops)
		} else if p.dropped++; p.dropped > mayDrop {
			return nil
		}
	}
	return p
}

// place returns the VLAN in which a path closes no loop and that has the most of its links, the
// first of equals.
func (p *packing) place(path []Hop) int {
	best, most := none, -1
	for i, f := range p.forests {
		if n := f.common(path); n > most && f.fits(path) {
			best, most = i, n
		}
	}
	return best
}

// leastVLANs bounds from below the number of VLANs for all paths.
func (t *Topology) leastVLANs(paths []SwitchPath) int {
	return max(1, t.leastForLinks(paths), t.leastForPaths(paths))
}

// leastForLinks counts the trees that have as many links as are in use: each has fewer links than
// there are switches.
func (t *Topology) leastForLinks(paths []SwitchPath) int {
	used := make(map[int]bool)
	for _, p := range paths {
		for _, h := range p.Hops {
			used[h.Link] = true
		}
	}
	tree := max(1, len(t.Switches)-1)
	return (len(used) + tree - 1) / tree
}

// leastForPaths collects paths of which any two close a loop, the longest first: each needs a VLAN
// of its own. To find the most of them is NP-hard, too.
func (t *Topology) leastForPaths(paths []SwitchPath) int {
	var apart []*forest // each has one path
	for _, i := range longestFirst(paths) {
		hops := paths[i].Hops
		if !slices.ContainsFunc(apart, func(f *forest) bool { return f.fits(hops) }) {
			f := newForest(t)
			f.add(hops)
			apart = append(apart, f)
		}
	}
	return len(apart)
}
