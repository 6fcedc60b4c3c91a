package topology

import (
	"cmp"
	"slices"

	"github.com/rawlane/rawlane/internal/prng"
)

// nowhere is the place of a path that is in no VLAN.
const nowhere = -1

// packing says which VLAN each path is in.
type packing struct {
	of      []int // of each path: its VLAN, or nowhere
	forests []*forest
	dropped int
}

// better reports whether p holds more paths than q, or as many in fewer VLANs.
func (p *packing) better(q *packing) bool {
	return cmp.Or(cmp.Compare(p.dropped, q.dropped), cmp.Compare(len(p.forests), len(q.forests))) < 0
}

// packBest packs the paths in several orders, and returns the best packing, the first of equals. It stops at one that is
// as good as can be.
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

// ranks returns of each path how many of the same two switches come before it.
func ranks(paths []SwitchPath) []int {
	rank := make([]int, len(paths))
	for i := 1; i < len(paths); i++ {
		if paths[i].From == paths[i-1].From && paths[i].To == paths[i-1].To {
			rank[i] = rank[i-1] + 1
		}
	}
	return rank
}

// pack places the paths in an order, each in a VLAN or in a new one while there may be more. It gives up and returns nil
// when it would drop more than it may.
func (t *Topology) pack(paths []SwitchPath, order []int, most, mayDrop int) *packing {
	p := &packing{of: make([]int, len(paths))}
	for _, i := range order {
		if p.of[i] = p.place(paths[i].Hops); p.of[i] != nowhere {
			p.forests[p.of[i]].add(paths[i].Hops)
			continue
		}
		if len(p.forests) == most {
			if p.dropped++; p.dropped > mayDrop {
				return nil
			}
			continue
		}
		f := newForest(t)
		f.add(paths[i].Hops)
		p.of[i] = len(p.forests)
		p.forests = append(p.forests, f)
	}
	return p
}

// place returns the VLAN in which a path closes no loop and which has the most of its links, the first of equals.
func (p *packing) place(path []Hop) int {
	best, most := nowhere, -1
	for i, f := range p.forests {
		if n := f.common(path); n > most && f.add(path) {
			f.undo()
			best, most = i, n
		}
	}
	return best
}

// forest is a set of links without loops. The switches of each of its pieces point, over others perhaps, to the one that
// stands for the piece. The smaller piece joins the larger, and nothing is moved afterwards, so that it can be undone.
type forest struct {
	t      *Topology
	in     []uint64 // of each link, a bit
	parent []int32  // of each switch: another one of its piece; or minus the piece's size, if it stands for it
	log    []joint  // what may have to be undone
}

// joint is the joining of two pieces by a link.
type joint struct {
	link         int
	smaller, was int32 // the switch that stood for the smaller piece, and its parent before
}

func newForest(t *Topology) *forest {
	f := &forest{t: t, in: make([]uint64, (len(t.Links)+63)/64), parent: make([]int32, len(t.Switches))}
	for s := range f.parent {
		f.parent[s] = -1
	}
	return f
}

func (f *forest) has(link int) bool { return f.in[link/64]&(1<<(link%64)) != 0 }

// members returns the links, ascending.
func (f *forest) members() []int {
	var links []int
	for l := range f.t.Links {
		if f.has(l) {
			links = append(links, l)
		}
	}
	return links
}

// common counts the links of a path that are there.
func (f *forest) common(path []Hop) int {
	n := 0
	for _, h := range path {
		if f.has(h.Link) {
			n++
		}
	}
	return n
}

// find returns the switch that stands for the piece of s.
func (f *forest) find(s int) int {
	for f.parent[s] >= 0 {
		s = int(f.parent[s])
	}
	return s
}

// join adds a link, unless it closes a loop, and reports whether it did.
func (f *forest) join(link int) bool {
	a, b := f.find(f.t.Links[link].A), f.find(f.t.Links[link].B)
	if a == b {
		return false
	}
	if f.parent[a] > f.parent[b] { // a's piece is the smaller one
		a, b = b, a
	}
	f.log = append(f.log, joint{link, int32(b), f.parent[b]})
	f.parent[a] += f.parent[b]
	f.parent[b] = int32(a)
	f.in[link/64] |= 1 << (link % 64)
	return true
}

// undo takes back what the last add joined.
func (f *forest) undo() {
	for _, j := range slices.Backward(f.log) {
		f.parent[f.parent[j.smaller]] -= j.was
		f.parent[j.smaller] = j.was
		f.in[j.link/64] &^= 1 << (j.link % 64)
	}
	f.log = f.log[:0]
}

// add adds the links of a path, unless one closes a loop, and reports whether it did.
func (f *forest) add(path []Hop) bool {
	f.log = f.log[:0]
	for _, h := range path {
		if !f.has(h.Link) && !f.join(h.Link) {
			f.undo()
			return false
		}
	}
	return true
}
