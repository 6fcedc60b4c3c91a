package topology

import (
	"cmp"
	"slices"
)

// maxPaths bounds the paths that ComputeVLANs chooses: two for each pair of 1,000 switches with
// hosts.
const maxPaths = 1 << 20

// maxPathHops bounds the hops of all of them together, 512 MiB: in a ring of 1,000 switches a path
// has 500 on average.
const maxPathHops = 1 << 25

// choosePaths chooses paths between any two switches that have hosts: most of them, or, if most is
// 0, as many as the one with fewer links has links. All paths together have at most so many hops.
func (t *Topology) choosePaths(most, mostHops int) ([]SwitchPath, error) {
	edges := t.edges()
	f := newPathFinder(t)
	var chosen []SwitchPath
	hopsOfAll := 0
	for i, from := range edges {
		for _, to := range edges[i+1:] {
			wanted := most
			if wanted == 0 {
				wanted = min(f.degree(from), f.degree(to))
			}
			for _, hops := range f.find(from, to, wanted, mostHops-hopsOfAll) {
				if len(chosen) == maxPaths {
					return nil, invalid("more than %d paths between switches with hosts"+
						" (ask for fewer for each pair)", maxPaths)
				}
				if hopsOfAll += len(hops); hopsOfAll > mostHops {
					return nil, invalid("the paths between switches with hosts have more than %d hops"+
						" (ask for fewer for each pair)", mostHops)
				}
				chosen = append(chosen, SwitchPath{From: from, To: to, Hops: hops})
			}
		}
	}
	return chosen, nil
}

// pathFinder finds several paths between two switches.
type pathFinder struct {
	t      *Topology
	next   *adjacency
	used   []int64 // of each link: chosen paths over it, of any pair
	shared []int32 // of each link: chosen paths over it, of this pair
	best   []cost  // of each switch: the cheapest way to it, as far as is known
	via    []Hop   // of each switch: the last hop of that way
	queue  queue
}

func newPathFinder(t *Topology) *pathFinder {
	all := make([]int, len(t.Links))
	for l := range all {
		all[l] = l
	}
	return &pathFinder{
		t:      t,
		next:   t.neighbours(all),
		used:   make([]int64, len(t.Links)),
		shared: make([]int32, len(t.Links)),
		best:   make([]cost, len(t.Switches)),
		via:    make([]Hop, len(t.Switches)),
	}
}

func (f *pathFinder) degree(s int) int { return len(f.next.of(int32(s))) }

// find returns up to wanted different paths, each the cheapest that remains. It ends with the one
// that takes them beyond so many hops.
func (f *pathFinder) find(from, to, wanted, mostHops int) (paths [][]Hop) {
	clear(f.shared)
	for hops := 0; len(paths) < wanted && hops <= mostHops; {
		path := f.cheapest(from, to)
		hops += len(path)
		if slices.ContainsFunc(paths, func(p []Hop) bool { return slices.Equal(p, path) }) {
			break
		}
		paths = append(paths, path)
		for _, h := range path {
			f.shared[h.Link]++
			f.used[h.Link]++
		}
	}
	return paths
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
		for _, h := range f.next.of(r.at) {
			c := cost{r.shared + f.shared[h.Link], r.hops + 1, r.used + f.used[h.Link]}
			if s := f.t.End(h); c.compare(f.best[s]) < 0 {
				f.best[s], f.via[s] = c, h
				f.queue.push(reached{c, int32(s)})
			}
		}
	}
	var hops []Hop
	for at := to; at != from; at = f.t.End(f.via[at].Reverse()) {
		hops = append(hops, f.via[at])
	}
	slices.Reverse(hops)
	return hops
}

// cost is the cost of a way: the first field counts first.
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

// queue is a binary heap, the cheapest first. (container/heap would allocate for each entry.)
type queue []reached

func (q *queue) push(r reached) {
	*q = append(*q, r)
	h := *q
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (q *queue) pop() reached {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	*q = h
	for i := 0; ; {
		least := i
		for _, below := range [2]int{2*i + 1, 2*i + 2} {
			if below < last && h[below].before(h[least]) {
				least = below
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
