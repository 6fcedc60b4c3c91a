package optimize

import (
	"slices"

	"github.com/rawlane/rawlane/vlan/topology"
)

// Edge colouring, for fat trees. A pair's path goes up by a link of its leaf that depends on the
// choice alone, and down by one of the other leaf. So pairs with one choice share a link if they
// share a leaf, as edges of one colour do at a vertex.
//
//	leaves 0, 1, 2, each with a pair to each other:      0
//	the pairs 0-1, 0-2, 1-2 need three colours         1/ \2       VID 1: 0-1
//	if both ways are used. If each talks one way,      /   \       VID 2: 0-2
//	0>1, 1>2, 2>0, one colour is enough.              1--3--2      VID 3: 1-2
//
// With more levels, the choices fall into classes: those that leave a leaf by the same link. The
// classes are the colours at the leaves. The pairs of one class then meet at the switches above,
// where the choices of the class are coloured in the same way.

// fromColours chooses by edge colouring where the network is such a tree, and by chooseLargestFirst
// elsewhere.
func (a *assignment) fromColours() {
	pairs, choices := make([]int, len(a.pairs)), make([]int32, len(a.vids))
	for i := range pairs {
		pairs[i] = i
	}
	for c := range choices {
		choices[c] = int32(c)
	}
	a.colourLevel(pairs, choices, 0)
	a.chooseLargestFirst()
}

// colourLevel chooses for some pairs among some choices, which are the same up to a level. Where
// the network is not a fat tree, it leaves pairs without a choice.
func (a *assignment) colourLevel(pairs []int, choices []int32, level int) {
	var higher []int
	for _, i := range pairs {
		row := a.pairs[i].paths
		odd := func(c int32) bool { return row[c] == nil || len(row[c]) != len(row[choices[0]]) }
		if slices.ContainsFunc(choices, odd) {
			return
		}
		if len(row[choices[0]]) > 2*level {
			higher = append(higher, i)
			continue
		}
		c := choices[0] // the path turns round below this level: all choices are the same
		if slices.Contains(choices, a.pairs[i].start) {
			c = a.pairs[i].start
		}
		a.take(i, c)
	}
	if len(higher) == 0 {
		return
	}
	if len(choices) == 1 {
		for _, i := range higher {
			a.take(i, choices[0])
		}
		return
	}
	classes, ok := a.classes(higher, choices, level)
	if !ok {
		return
	}
	colours := colour(a.arcs(higher, choices[0], level), len(classes))
	names := a.nameColours(higher, colours, classes)
	of := make([][]int, len(classes))
	for k, i := range higher {
		of[names[colours[k]]] = append(of[names[colours[k]]], i)
	}
	for n, class := range classes {
		a.colourLevel(of[n], class, level+1)
	}
}

// classes groups choices by the link by which they leave a level's switches. ok is false unless
// that is the same grouping for all switches of the pairs.
func (a *assignment) classes(pairs []int, choices []int32, level int) (classes [][]int32, ok bool) {
	class := make([]int, len(a.vids))  // of each choice
	checked := make(map[*[]int32]bool) // pairs of the same switches share their paths
	link := func(path []int32, end int) int32 {
		if end == 0 {
			return path[level] / 2
		}
		return path[len(path)-1-level] / 2
	}
	for n, i := range pairs {
		row := a.pairs[i].paths
		if checked[&row[0]] {
			continue
		}
		checked[&row[0]] = true
		for end := range 2 {
			first := make(map[int32]int) // by link: its class
			for _, c := range choices {
				l := link(row[c], end)
				if _, seen := first[l]; !seen {
					first[l] = len(first)
				}
				if n == 0 && end == 0 {
					class[c] = first[l]
				}
				if class[c] != first[l] {
					return nil, false
				}
			}
		}
	}
	for _, c := range choices {
		if class[c] == len(classes) {
			classes = append(classes, nil)
		}
		classes[class[c]] = append(classes[class[c]], c)
	}
	return classes, true
}

// arc is a pair that talks from one vertex to another.
type arc struct{ from, to int }

// arcs returns pairs as arcs between the switches of a level, numbered from 0. A pair that talks
// one way has that direction. Pairs that talk both ways get one along Euler trails: at each switch,
// as many leave as arrive, or one more or less.
func (a *assignment) arcs(pairs []int, choice int32, level int) []arc {
	number := make(map[int]int)
	vertex := func(h int32) int {
		sw := a.topology.End(topology.HopAt(int(h)).Reverse())
		if _, ok := number[sw]; !ok {
			number[sw] = len(number)
		}
		return number[sw]
	}
	arcs := make([]arc, len(pairs))
	var both []int
	for k, i := range pairs {
		p := &a.pairs[i]
		path := p.paths[choice]
		arcs[k] = arc{vertex(path[level]), vertex(path[len(path)-1-level] ^ 1)}
		switch {
		case p.forth > 0 && p.back > 0:
			both = append(both, k)
		case p.back > 0:
			arcs[k] = arc{arcs[k].to, arcs[k].from}
		}
	}
	orient(arcs, both, len(number))
	return arcs
}

// orient turns some of the arcs round, so that they follow trails. A trail begins at a vertex with
// an odd number of them, as long as there is one, and ends where no arc is left. So at most one arc
// of each vertex has no counterpart.
func orient(arcs []arc, some []int, vertices int) {
	at := make([][]int, vertices) // the arcs not yet walked, and some that are
	left := make([]int, vertices) // the number of arcs not yet walked
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

// colour gives each arc one of k colours, so that of the n arcs that leave a vertex at most ⌈n/k⌉
// have one colour, and of the n that arrive likewise.
//
// Each vertex is split into vertices of at most k arcs, for the arcs that leave and for those that
// arrive. That is a bipartite graph of degree k at most, and has k colours (König): an arc takes a
// colour that both its ends lack, if there is one. Otherwise two colours change places along the
// path that begins at one end, which in a bipartite graph does not reach the other end.
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

// add colours arc i. Its ends have fewer than k others.
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

// nameColours returns the class that each colour stands for. Any permutation of the colours is as
// good, so it is the class that most of the colour's pairs are in now, the largest groups first.
func (a *assignment) nameColours(pairs, colours []int, classes [][]int32) []int {
	k := len(classes)
	class := slices.Repeat([]int{-1}, len(a.vids)) // of each choice
	for n, choices := range classes {
		for _, c := range choices {
			class[c] = n
		}
	}
	type group struct{ colour, class, size int }
	groups := make([]group, k*k)
	for g := range groups {
		groups[g] = group{colour: g / k, class: g % k}
	}
	for n, i := range pairs {
		if start := a.pairs[i].start; start != noChoice && class[start] >= 0 {
			groups[colours[n]*k+class[start]].size++
		}
	}
	slices.SortStableFunc(groups, func(x, y group) int { return y.size - x.size })
	names, taken := slices.Repeat([]int{-1}, k), make([]bool, k)
	for _, g := range groups {
		if names[g.colour] < 0 && !taken[g.class] {
			names[g.colour], taken[g.class] = g.class, true
		}
	}
	return names
}
