package vlan

import "slices"

// Edge colouring, for fat trees of two levels. The path of a pair by choice c goes up from its leaf's hop c, and down to
// the other leaf's: so pairs that choose c share a link if they share a leaf, as edges of one colour at a vertex.
//
//	leaves 0, 1, 2, each with a pair to each other:      0
//	the pairs 0-1, 0-2, 1-2 need three colours         1/ \2       VID 1: 0-1
//	if both ways are used. If each talks one way,      /   \       VID 2: 0-2
//	0>1, 1>2, 2>0, one colour is enough.              1--3--2      VID 3: 1-2

// fromColours chooses by edge colouring where the network is such a tree, and by largestFirst where not.
func (a *assignment) fromColours() {
	leaves, ok := a.leaves()
	if !ok {
		a.largestFirst()
		return
	}
	colours := colour(a.arcs(leaves), len(a.vids))
	names := a.nameColours(colours)
	for i, c := range colours {
		a.take(i, names[c])
	}
}

// leaves numbers the switches that pairs are at, if all choices of all pairs are as in a fat tree of two levels: a hop up and a
// hop down, each by the link that the leaf has for this choice alone.
func (a *assignment) leaves() (map[int]int, bool) {
	leaves := make(map[int]int)
	up := make(map[[2]int]int32) // by switch and choice: the link
	of := make(map[int32][2]int) // by link: the switch and choice
	claim := func(sw, c int, link int32) bool {
		key := [2]int{sw, c}
		had, ok := up[key]
		owner, owned := of[link]
		up[key], of[link] = link, key
		return (!ok || had == link) && (!owned || owner == key)
	}
	for i := range a.pairs {
		p := &a.pairs[i]
		from, to := a.topology.Hosts[p.pair.A].Switch, a.topology.Hosts[p.pair.B].Switch
		for _, sw := range []int{from, to} {
			if _, ok := leaves[sw]; !ok {
				leaves[sw] = len(leaves)
			}
		}
		for c, path := range p.paths {
			if len(path) != 2 || !claim(from, c, path[0]/2) || !claim(to, c, path[1]/2) {
				return nil, false
			}
		}
	}
	return leaves, true
}

// arc is a pair that talks from one leaf to another.
type arc struct{ from, to int }

// arcs returns the pairs as arcs between leaves. Who talks one way has that direction; those that talk both ways
// get one along Euler trails: at each leaf, as many leave as arrive, or one more or less.
func (a *assignment) arcs(leaves map[int]int) []arc {
	arcs := make([]arc, len(a.pairs))
	var both []int
	for i := range a.pairs {
		p := &a.pairs[i]
		arcs[i] = arc{leaves[a.topology.Hosts[p.pair.A].Switch], leaves[a.topology.Hosts[p.pair.B].Switch]}
		switch {
		case p.forth > 0 && p.back > 0:
			both = append(both, i)
		case p.back > 0:
			arcs[i] = arc{arcs[i].to, arcs[i].from}
		}
	}
	orient(arcs, both, len(leaves))
	return arcs
}

// orient turns some of the arcs round, so that they are walked along trails. A trail begins at a vertex with an odd number
// of them, as long as there is one, and ends where no arc is left: so at most one arc of each vertex has no counterpart.
func orient(arcs []arc, some []int, vertices int) {
	at := make([][]int, vertices) // arcs not yet walked, and some that are
	left := make([]int, vertices) // how many are not
	for _, i := range some {
		at[arcs[i].from] = append(at[arcs[i].from], i)
		at[arcs[i].to] = append(at[arcs[i].to], i)
		left[arcs[i].from]++
		left[arcs[i].to]++
	}
	walked := make([]bool, len(arcs))
	walk := func(v int) {
		for left[v] > 0 {
			i := at[v][len(at[v])-1]
			at[v] = at[v][:len(at[v])-1]
			if walked[i] {
				continue
			}
			walked[i] = true
			next := arcs[i].from + arcs[i].to - v
			arcs[i] = arc{v, next}
			left[v]--
			left[next]--
			v = next
		}
	}
	for v := range vertices {
		if left[v]%2 == 1 {
			walk(v)
		}
	}
	for v := range vertices {
		walk(v)
	}
}

// colour gives each arc one of k colours, so that of the n arcs that leave a vertex at most ⌈n/k⌉ have one colour, and
// of the n that arrive likewise.
//
// Each vertex is split into ones of at most k arcs, for those that leave and those that arrive. That is a bipartite graph of degree
// k at most, and has k colours (König): an arc takes a colour that both its ends lack, if there is one; else two
// colours change places along the path that begins at one end, which in a bipartite graph does not come to the other.
func colour(arcs []arc, k int) []int {
	c := colouring{k: k, arcs: make([]arc, len(arcs)), of: make([]int, len(arcs))}
	split := make(map[[2]int]int) // by vertex and side: arcs so far
	ends := make(map[[3]int]int)  // by vertex, side and part: the number of the vertex that was split off
	end := func(vertex, side int) int {
		n := split[[2]int{vertex, side}]
		split[[2]int{vertex, side}]++
		key := [3]int{vertex, side, n / k}
		if _, ok := ends[key]; !ok {
			ends[key] = len(ends)
			c.at = append(c.at, slices.Repeat([]int{-1}, k)...)
		}
		return ends[key]
	}
	for i, a := range arcs {
		c.arcs[i] = arc{end(a.from, 0), end(a.to, 1)}
		c.add(i)
	}
	return c.of
}

// colouring of a bipartite graph, edge by edge.
type colouring struct {
	k    int
	arcs []arc
	of   []int // colour of each arc that was added
	at   []int // by vertex*k+colour: the arc, or -1
}

func (c *colouring) free(vertex int) int { return slices.Index(c.at[vertex*c.k:(vertex+1)*c.k], -1) }

func (c *colouring) set(i, col int) {
	c.of[i] = col
	c.at[c.arcs[i].from*c.k+col] = i
	c.at[c.arcs[i].to*c.k+col] = i
}

// add colours arc i, whose ends have less than k others.
func (c *colouring) add(i int) {
	a := c.arcs[i]
	x, y := c.free(a.from), c.free(a.to)
	if c.at[a.to*c.k+x] >= 0 {
		c.exchange(a.to, x, y)
	}
	c.set(i, x)
}

// exchange colours x and y along the path that begins at a vertex with x, where y is free.
func (c *colouring) exchange(vertex, x, y int) {
	var path []int
	for v, col := vertex, x; ; {
		i := c.at[v*c.k+col]
		if i < 0 {
			break
		}
		path = append(path, i)
		v = c.arcs[i].from + c.arcs[i].to - v
		col = x + y - col
	}
	for _, i := range path {
		c.at[c.arcs[i].from*c.k+c.of[i]] = -1
		c.at[c.arcs[i].to*c.k+c.of[i]] = -1
	}
	for _, i := range path {
		c.set(i, x+y-c.of[i])
	}
}

// nameColours says which choice each colour stands for: the one that the most of its pairs have now, the largest groups
// first, since any permutation of the colours is as good.
func (a *assignment) nameColours(colours []int) []int32 {
	k := len(a.vids)
	type group struct{ colour, choice, size int }
	groups := make([]group, k*k)
	for g := range groups {
		groups[g] = group{colour: g / k, choice: g % k}
	}
	for i, c := range colours {
		if start := a.pairs[i].start; start != noChoice {
			groups[c*k+int(start)].size++
		}
	}
	slices.SortStableFunc(groups, func(x, y group) int { return y.size - x.size })
	names, taken := slices.Repeat([]int32{noChoice}, k), make([]bool, k)
	for _, g := range groups {
		if names[g.colour] == noChoice && !taken[g.choice] {
			names[g.colour], taken[g.choice] = int32(g.choice), true
		}
	}
	return names
}
