package schedule

import (
	"slices"
	"time"
)

// Estimates take the place of walks for many ranks: a walk of 4,096 takes milliseconds, and there
// is one for each candidate. Where each rank has a processor of its own they follow the longest
// path of messages. Where ranks share cores they add what work there is for each core, by Brent's
// bound: work/cores + longest path * (1 - 1/cores).

// maxWalk is the number of ranks up to which a candidate's cost is walked.
const maxWalk = 64

// site is so many ranks that exchange messages of one cost, on so many cores or, if that is 0, on
// one each.
type site struct {
	ranks, cores int
	p            LogP
}

// site returns the ranks of a host.
func (s *Shape) site(host, ranks int) site {
	at := site{ranks: ranks, p: s.Hosts[host].Local}
	if s.shares(host, ranks) {
		at.cores = s.Hosts[host].Cores
	}
	return at
}

// sites returns the ranks of each host, once for hosts that are alike.
func (s *Shape) sites() (all []site) {
	known := map[site]bool{}
	for h, ranks := range s.ranks() {
		if at := s.site(h, ranks); !known[at] {
			known[at] = true
			all = append(all, at)
		}
	}
	return all
}

// shared returns how long something takes whose longest path and whose work are known.
func (s site) shared(path, work time.Duration) time.Duration {
	if s.cores == 0 {
		return path
	}
	path += s.p.Switch
	return work/time.Duration(s.cores) + path - path/time.Duration(s.cores)
}

// times is n times d.
func times(n int, d time.Duration) time.Duration { return time.Duration(n) * d }

// receives is the time of n receives of messages that arrive together, and sends of n sends, to the
// end of the last.
func (s site) receives(n int) time.Duration { return times(n-1, max(s.p.Or, s.p.Gap)) + s.p.Or }
func (s site) sends(n int) time.Duration    { return times(n-1, max(s.p.Os, s.p.Gap)) + s.p.Os }

// up is the time until the root of a k-nomial tree has heard all: with k of ranks, a flat one.
func (s site) up(k int) time.Duration {
	path := time.Duration(0)
	for d := 1; d < s.ranks; d *= k {
		path += s.p.Os + s.p.L + s.receives(min(k-1, (s.ranks-1)/d))
	}
	return s.shared(path, times(s.turns(k), s.p.Switch)+times(s.ranks-1, s.p.Os+s.p.Or))
}

// turns is how often ranks are woken on the way up a k-nomial tree: those that have others below
// them for each phase.
func (s site) turns(k int) int {
	turns := s.ranks
	for d := 1; d < s.ranks; d *= k {
		turns += max(1, s.ranks/(d*k))
	}
	return turns
}

// down is the time of a release down a k-nomial tree.
func (s site) down(k int) time.Duration {
	var phases, span int // span: the ranks below one of the root's lowest children in its last phase
	for d := 1; d < s.ranks; d *= k {
		phases, span = phases+1, d
	}
	below := make([]time.Duration, phases+1) // by phases of a subtree
	for p := 1; p <= phases; p++ {
		sent := 0
		for child := p - 1; child >= 0; child-- {
			count := k - 1
			if p == phases && child == p-1 {
				count = min(count, (s.ranks-1)/span)
			}
			sent += count
			below[p] = max(below[p], s.sends(sent)+s.p.L+s.p.Or+below[child])
		}
	}
	return s.shared(below[phases], times(s.ranks-1, s.p.Switch+s.p.Os+s.p.Or))
}

// multicast is the time of a release at once, of two ranks or more.
func (s site) multicast() time.Duration {
	path := s.p.Os + times(s.ranks-2, s.p.Copy) + s.p.L + s.p.Or
	return s.shared(path, times(s.ranks-1, s.p.Switch+s.p.Or+s.p.Copy))
}

// shuffle is the time of a shuffle exchange.
func (s site) shuffle() time.Duration {
	phases := digits(s.ranks, 2)
	path := times(phases, s.p.Os+s.p.L+s.p.Or)
	return s.shared(path, times(phases*s.ranks, s.p.Switch+s.p.Os+s.p.Or))
}

// estimates are the candidates with estimates of their costs.
func (s *Shape) estimates() []Choice {
	size := len(s.Of)
	if len(s.Hosts) == 1 {
		return s.site(0, size).candidates()
	}
	leaders := site{ranks: len(s.Hosts), p: s.between()[0]}
	if len(s.Hosts) == size {
		return leaders.candidates()
	}
	e := estimator{Shape: s, sites: s.sites(), leaders: leaders}
	e.release = leaders.p.Os + leaders.p.L +
		times(s.ranks()[s.Of[0]]-1, s.Hosts[s.Of[0]].Local.Copy) +
		e.longest(func(at site) time.Duration {
			return at.shared(leaders.p.Or, times(at.ranks, at.p.Switch+leaders.p.Or))
		})
	e.addFlat()
	e.addHierarchies()
	return e.all
}

// estimator makes estimates for several hosts, some of which have several ranks. What goes on
// within them ends when the slowest is ready.
type estimator struct {
	*Shape
	sites   []site        // of the hosts, those that are alike once
	leaders site          // one rank of each host
	release time.Duration // by a multicast, to all ranks
	all     []Choice
}

// addFlat adds the algorithms that know no hosts.
func (e *estimator) addFlat() {
	size := len(e.Of)
	add := func(a Algorithm, cost time.Duration, frames int) { e.all = append(e.all, Choice{a, cost, frames}) }
	add(Shuffle(), e.flatShuffle(), size*digits(size, 2))
	for _, k := range trees(size, branching) {
		add(Tree(k), e.flatUp(k)+e.release, size)
	}
}

// flatShuffle is the time of a shuffle exchange that knows no hosts. Each phase has messages
// between hosts, but for those phases of ranks in turn whose distance is a multiple of the hosts.
func (e *estimator) flatShuffle() time.Duration {
	size, hosts := len(e.Of), len(e.Hosts)
	between, path := e.leaders.p, time.Duration(0)
	within := e.inTurn() && size%hosts == 0
	for d := 1; d < size; d *= 2 {
		if within && d%hosts == 0 {
			path += e.longest(func(at site) time.Duration { return at.p.Os + at.p.L + at.p.Or })
		} else {
			path += between.Os + between.L + between.Or
		}
	}
	return path + e.longest(func(at site) time.Duration {
		return at.shared(0, times(digits(size, 2)*at.ranks, at.p.Switch+between.Os+between.Or))
	})
}

// flatUp is the time of a tree that knows no hosts, until its root has heard all. Of ranks in rows
// the first phases are within hosts, and the others between them; of ranks in another order each
// phase has messages between hosts.
func (e *estimator) flatUp(k int) time.Duration {
	if slices.IsSorted(e.Of) {
		return e.up(k) + e.leaders.up(k)
	}
	return site{ranks: len(e.Of), p: e.leaders.p}.up(k) + e.longest(func(at site) time.Duration {
		message := max(at.p.Os+at.p.Or, e.leaders.p.Os+e.leaders.p.Or)
		return at.shared(0, times(at.turns(k), at.p.Switch)+times(at.ranks, message))
	})
}

// up is the time until a rank of each host has heard the others.
func (e *estimator) up(k int) time.Duration {
	return e.longest(func(at site) time.Duration { return at.up(at.branches(k)) })
}

// addHierarchies adds those in which the ranks of a host meet first.
func (e *estimator) addHierarchies() {
	byHost, outers := e.byHost(), e.leaders.candidates()
	for i, k := range []int{0, 4} { // of inners
		in := e.up(k)
		out := e.longest(func(at site) time.Duration { return at.down(at.branches(k)) })
		for _, outer := range outers {
			cost, frames := outer.Cost, len(e.Of)
			switch a := outer.Algorithm; {
			case a.releasesAll:
				cost += e.release - e.leaders.multicast()
			case a.out == nil:
				cost += out
				frames = outer.Frames + 2*(len(e.Of)-e.leaders.ranks)
			default: // no release that goes down is better than one at once
				continue
			}
			e.all = append(e.all, Choice{byHost(inners[i], outer.Algorithm), in + cost, frames})
		}
	}
}

// longest returns the longest of a time for each host.
func (e *estimator) longest(of func(site) time.Duration) (longest time.Duration) {
	for _, at := range e.sites {
		longest = max(longest, of(at))
	}
	return longest
}

// branches is k or, if that is 0, what makes a tree flat.
func (s site) branches(k int) int {
	if k == 0 {
		return s.ranks
	}
	return k
}

// candidates are those of a site, with their costs.
func (s site) candidates() (all []Choice) {
	release, n := s.multicast(), s.ranks
	add := func(a Algorithm, cost time.Duration, frames int) { all = append(all, Choice{a, cost, frames}) }
	add(Shuffle(), s.shuffle(), n*digits(n, 2))
	add(Concurrent(), s.up(s.branches(0))+release, n)
	for _, k := range trees(n, branching) {
		add(Tree(k), s.up(k)+release, n)
	}
	for _, k := range []int{2, 4} {
		add(TreeTree(k), s.up(k)+s.down(k), 2*(n-1))
	}
	add(Star(), s.up(s.branches(0))+s.down(s.branches(0)), 2*(n-1))
	return all
}
