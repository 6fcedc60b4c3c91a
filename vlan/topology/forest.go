package topology

import "slices"

// forest is a set of links without loops: a union-find over the switches. A switch points, over
// others perhaps, to the one that stands for its piece. The smaller piece joins the larger, and no
// path is compressed, so that the last add can be undone.
type forest struct {
	t      *Topology
	in     []uint64 // of each link, a bit
	parent []int32  // of each switch: another one of its piece; or minus the piece's size, if it stands for it
	log    []union  // of the last add
}

// union is the joining of two pieces by a link.
type union struct {
	link         int
	smaller, was int32 // the switch that stood for the smaller piece, and its parent before
}

func newForest(t *Topology) *forest {
	return &forest{t: t, in: make([]uint64, (len(t.Links)+63)/64), parent: slices.Repeat([]int32{-1}, len(t.Switches))}
}

func (f *forest) has(link int) bool { return f.in[link/64]&(1<<(link%64)) != 0 }

// members returns the links, ascending.
func (f *forest) members() (links []int) {
	for l := range f.t.Links {
		if f.has(l) {
			links = append(links, l)
		}
	}
	return links
}

// common counts the links of a path that are in the forest.
func (f *forest) common(path []Hop) (n int) {
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
	f.log = append(f.log, union{link, int32(b), f.parent[b]})
	f.parent[a] += f.parent[b]
	f.parent[b] = int32(a)
	f.in[link/64] |= 1 << (link % 64)
	return true
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

// fits reports whether a path closes no loop.
func (f *forest) fits(path []Hop) bool {
	ok := f.add(path)
	f.undo()
	return ok
}

// undo takes back what the last add joined.
func (f *forest) undo() {
	for _, u := range slices.Backward(f.log) {
		f.parent[f.parent[u.smaller]] -= u.was
		f.parent[u.smaller] = u.was
		f.in[u.link/64] &^= 1 << (u.link % 64)
	}
	f.log = f.log[:0]
}
