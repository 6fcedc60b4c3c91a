package topology

import (
	"cmp"
	"slices"
)

// maxPaths bounds the paths that ComputeVLANs chooses: two for each pair of 1,000 switches with hosts.
const maxPaths = 1 << 20

// choosePaths chooses paths between any two switches that have hosts: most of them, or as many as one has links where
// most is 0.
func (t *Topology) choosePaths(most int) ([]SwitchPath, error) {
	edges := t.edges()
	f := newPathFinder(t)
	var chosen []SwitchPath
	for i, from := range edges {
		for _, to := range edges[i+1:] {
			wanted := min(f.degree(from), f.degree(to))
			if most > 0 {
				wanted = most
			}
			for range wanted {
				hops := f.next(from, to)
				if hops == nil {
					break
				}
				if len(chosen) == maxPaths {
					return nil, invalid("more than %d paths between switches with hosts (ask for fewer for each pair)", maxPaths)
				}
				chosen = append(chosen, SwitchPath{From: from, To: to, Hops: hops})
			}
			f.forget()
		}
	}
	return chosen, nil
}

// pathFinder finds one path after the other between two switches.
type pathFinder struct {
	t      *Topology
	hops   *adjacency
	used   []int64 // of each link: chosen paths over it, of any pair
	shared []int32 // of each link: chosen paths over it, of this pair
	found  [][]Hop // the chosen paths of this pair
	best   []cost  // of each switch: the cheapest way to it, as far as is known
	via    []Hop   // of each switch: the last hop of that way
	queue  costHeap
}

func newPathFinder(t *Topology) *pathFinder {
	all := make([]int, len(t.Links))
	for l := range all {
		all[l] = l
	}
	return &pathFinder{
		t:      t,
		hops:   t.neighbours(all),
		used:   make([]int64, len(t.Links)),
		shared: make([]int32, len(t.Links)),
		best:   make([]cost, len(t.Switches)),
		via:    make([]Hop, len(t.Switches)),
	}
}

func (f *pathFinder) degree(s int) int { return len(f.hops.of(int32(s))) }

// next returns the next path, or nil if the best that remains is one of those before.
func (f *pathFinder) next(from, to int) []Hop {
	hops := f.cheapest(from, to)
	for _, earlier := range f.found {
		if slices.Equal(hops, earlier) {
			return nil
		}
	}
	f.found = append(f.found, hops)
	for _, h := range hops {
		f.shared[h.Link]++
		f.used[h.Link]++
	}
	return hops
}

// forget makes ready for another pair.
func (f *pathFinder) forget() {
	for _, hops := range f.found {
		for _, h := range hops {
			f.shared[h.Link] = 0
		}
	}
	f.found = f.found[:0]
}

// cheapest is Dijkstra's search. There is a path.
func (f *pathFinder) cheapest(from, to int) []Hop {
	for s := range f.best {
		f.best[s] = unreached
	}
	f.best[from] = cost{}
	f.queue = append(f.queue[:0], reached{at: int32(from)})
	for len(f.queue) > 0 {
		r := f.queue.pop()
		if int(r.at) == to {
			break
		}
		if r.cost != f.best[r.at] {
			continue // there was a cheaper way
		}
		for _, h := range f.hops.of(r.at) {
			c := cost{r.shared + f.shared[h.Link], r.hops + 1, r.used + f.used[h.Link]}
			if s := f.t.End(h); c.compare(f.best[s]) < 0 {
				f.best[s], f.via[s] = c, h
				f.queue.push(reached{c, int32(s)})
			}
		}
	}
	var hops []Hop
	for at := to; at != from; {
		hops = append(hops, f.via[at])
		at = f.t.End(f.via[at].Reverse())
	}
	slices.Reverse(hops)
	return hops
}

// cost is what a way costs, the first field first.
type cost struct {
	shared, hops int32
	used         int64
}

// unreached is more than any cost.
var unreached = cost{shared: 1<<31 - 1}

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.shared, d.shared), cmp.Compare(c.hops, d.hops), cmp.Compare(c.used, d.used))
}

// reached is a switch and the cost of a way to it.
type reached struct {
	cost
	at int32
}

func (r reached) before(s reached) bool {
	return cmp.Or(r.compare(s.cost), cmp.Compare(r.at, s.at)) < 0
}

// costHeap is a binary heap, the cheapest first. (container/heap would allocate for each entry.)
type costHeap []reached

func (h *costHeap) push(r reached) {
	*h = append(*h, r)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if !q[i].before(q[up]) {
			return
		}
		q[i], q[up] = q[up], q[i]
		i = up
	}
}

func (h *costHeap) pop() reached {
	q := *h
	first, last := q[0], len(q)-1
	q[0] = q[last]
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for _, below := range [2]int{2*i + 1, 2*i + 2} {
			if below < last && q[below].before(q[least]) {
				least = below
			}
		}
		if least == i {
			return first
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
