package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Host is a machine on which ranks run.
type Host struct {
	Cores int  // processors that its ranks share; 0, or as many as ranks, is one each
	Local LogP // costs of a message between two of them; its Cores is not looked at
}

// Shape is where the ranks of a group run. The zero Shape is unknown: an algorithm is chosen as if
// each rank had a machine of its own.
type Shape struct {
	Of      []int  // by rank: the index of its host in Hosts
	Hosts   []Host // one without a rank does not count
	Between LogP   // costs of a message between two hosts; zero is DefaultLogP
}

// OneHost is the shape of so many ranks on one host, by the costs and Cores of a LogP: KernelCosts,
// MemoryCosts or FabricCosts.
func OneHost(size, cores int, local LogP) Shape {
	return Shape{Of: make([]int, size), Hosts: []Host{{Cores: cores, Local: local}}}
}

// Known reports whether s says where ranks run.
func (s Shape) Known() bool { return len(s.Hosts) > 0 }

// String says how many ranks run on how many hosts, and how many cores these have. Unless all hosts
// but the last have as many ranks, which follow each other, it says too how they are spread: "in
// turn", or by a digest of which are on one host.
func (s Shape) String() string {
	if !s.Known() {
		return unknownHosts
	}
	s = s.used()
	count := func(n int, what string) string {
		if n == 1 {
			return fmt.Sprintf("1 %s", what)
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	var kinds []string // of hosts, in the order of their first ranks
	hosts := map[string]int{}
	for h, ranks := range s.ranks() {
		cores := "a core each"
		if s.shares(h, ranks) {
			cores = count(s.Hosts[h].Cores, "core")
		}
		kind := count(ranks, "rank") + " on " + cores
		if hosts[kind]++; hosts[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = count(hosts[kind], "host") + ": " + kind
	}
	switch {
	case len(s.Of) == 0 || s.regular() != 0:
	case s.inTurn():
		kinds = append(kinds, "in turn")
	default:
		kinds = append(kinds, fmt.Sprintf("spread %08x", newLayout(s.members()).digest()))
	}
	return strings.Join(kinds, "; ")
}

// shares reports whether the ranks of a host, so many, share its cores.
func (s *Shape) shares(host, ranks int) bool {
	cores := s.Hosts[host].Cores
	return cores > 0 && cores < ranks
}

// Crowded reports whether a host has more ranks than cores: each waits for the turns of others.
func (s Shape) Crowded() bool {
	for h, ranks := range s.ranks() {
		if s.shares(h, ranks) {
			return true
		}
	}
	return false
}

// ranks returns how many ranks each host has.
func (s *Shape) ranks() []int {
	all := make([]int, len(s.Hosts))
	for _, h := range s.Of {
		all[h]++
	}
	return all
}

// members returns the ranks of each host, in ascending order.
func (s *Shape) members() [][]int {
	all := make([][]int, len(s.Hosts))
	for rank, h := range s.Of {
		all[h] = append(all[h], rank)
	}
	return all
}

// between returns the costs of messages between hosts.
func (s *Shape) between() []LogP {
	if s.Between == (LogP{}) {
		return []LogP{DefaultLogP}
	}
	return []LogP{s.Between}
}

// used returns s without the hosts that have no rank. It panics if s does not say where each of its
// ranks is.
func (s Shape) used() Shape {
	number := make([]int, len(s.Hosts)) // of each host with a rank, from 1
	for rank, h := range s.Of {
		if h < 0 || h >= len(s.Hosts) {
			panic(fmt.Sprintf("schedule: rank %d is on host %d of %d", rank, h, len(s.Hosts)))
		}
		number[h] = 1
	}
	if !slices.Contains(number, 0) {
		return s
	}
	used := Shape{Between: s.Between}
	for h := range number {
		if number[h] > 0 {
			used.Hosts = append(used.Hosts, s.Hosts[h])
			number[h] = len(used.Hosts)
		}
	}
	for _, h := range s.Of {
		used.Of = append(used.Of, number[h]-1)
	}
	return used
}

// Cost is Algorithm.Cost for the ranks of a known shape: messages within a host cost other than
// those between hosts, and ranks that share cores wait for them.
func (s Shape) Cost(a Algorithm) time.Duration {
	s = s.used()
	w := newWalkOn(a.For(len(s.Of)), &s, s.between())
	w.run()
	return slices.Max(w.exits)
}

// Choices returns the algorithms that are considered for a known shape, the best first: of those
// that cost nearly the least, the one with the fewest frames, and of these the simplest. On one
// host whose ranks share its cores a quarter more is nearly the least. The others follow by cost.
// Of more than 64 ranks the costs are estimates, and where hosts have several, fewer algorithms are
// considered.
func (s Shape) Choices() []Choice {
	s = s.used()
	size := len(s.Of)
	if size > maxWalk {
		return best(s.estimates(), s.nearly())
	}
	var all []Choice
	for _, a := range append(candidates(size), s.hierarchies()...) {
		all = append(all, Choice{a, s.Cost(a), a.Frames(size)})
	}
	return best(all, s.nearly())
}

// nearlyShared is nearly for ranks that share the cores of one host: who runs when is up to the
// scheduler, and the model's order is one of many. Of 4 processes through memory it has tree:2 a
// fifth quicker than concurrent, and measured it is a fifth slower (go run ./bench/shm).
const nearlyShared = 25

// nearly returns the difference, in percent, up to which two costs count as the same.
func (s *Shape) nearly() int {
	if len(s.Hosts) == 1 && s.shares(0, len(s.Of)) {
		return nearlyShared
	}
	return nearly
}

// Choose returns the best algorithm for a group of so many ranks, and is what a group has that
// names none: by an unknown shape that of Auto. All members must give the same shape.
func (s Shape) Choose(size int) Algorithm {
	if !s.Known() {
		return ofUnknown.For(size)
	}
	if len(s.Of) != size {
		panic(fmt.Sprintf("schedule: a shape of %d ranks for %d", len(s.Of), size))
	}
	return chosen.choose(s)
}

// ofUnknown chooses for groups that know no shape, and remembers.
var ofUnknown = Auto()

// chosen are the last choices for known shapes: a program has few shapes, and many groups.
var chosen memory

// memory has the last few choices, the newest first.
type memory struct{ list atomic.Pointer[[]choiceFor] } // replaced, and never changed

// choiceFor is what was chosen for a shape.
type choiceFor struct {
	shape     Shape
	algorithm Algorithm
}

// remembered is how many choices a memory holds.
const remembered = 32

func (m *memory) known() []choiceFor {
	if list := m.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (m *memory) choose(s Shape) Algorithm {
	known := m.known()
	for i := range known {
		if k := &known[i]; k.shape.equal(&s) {
			return k.algorithm
		}
	}
	made := choiceFor{Shape{slices.Clone(s.Of), slices.Clone(s.Hosts), s.Between}, s.Choices()[0].Algorithm}
	list := append([]choiceFor{made}, known[:min(len(known), remembered-1)]...)
	m.list.Store(&list) // of two at once one is forgotten, and chosen again
	return made.algorithm
}

func (s *Shape) equal(o *Shape) bool {
	return s.Between == o.Between && slices.Equal(s.Hosts, o.Hosts) && slices.Equal(s.Of, o.Of)
}

// hierarchies returns the candidates in levels: the ranks of a host meet first.
func (s *Shape) hierarchies() (all []Algorithm) {
	if len(s.Hosts) < 2 || len(s.Hosts) == len(s.Of) {
		return nil
	}
	byHost := s.byHost()
	for _, outer := range outers(len(s.Hosts)) {
		for _, inner := range inners {
			all = append(all, byHost(inner, outer))
		}
	}
	return all
}

// inners are the algorithms within a host that are considered: for few cores, and for many.
var inners = []Algorithm{Star(), TreeTree(4)}

// outers are those among the hosts.
func outers(hosts int) []Algorithm {
	all := []Algorithm{Shuffle(), Concurrent()}
	for _, k := range trees(hosts, []int{2, 4, 8, 16}) {
		all = append(all, Tree(k))
	}
	return all
}

// byHost returns Hierarchical with the hosts of s as groups: they may be of different sizes, and
// have ranks that do not follow each other. If they are alike and do, it is the same algorithm;
// otherwise Parse does not know its name, which has a digest of who is on which host.
func (s *Shape) byHost() func(inner, outer Algorithm) Algorithm {
	if group := s.regular(); group != 0 {
		return func(inner, outer Algorithm) Algorithm { return Hierarchical(inner, outer, group) }
	}
	l := newLayout(s.members())
	digest := l.digest()
	return func(inner, outer Algorithm) Algorithm {
		return hierarchical(fmt.Sprintf("hosts:%08x:%v:%v", digest, inner, outer), inner, outer, l.divide)
	}
}

// regular returns how many ranks each host has, if all but the last have as many, and these follow
// each other; 0 if not.
func (s *Shape) regular() int {
	group := 0
	for ; group < len(s.Of) && s.Of[group] == s.Of[0]; group++ {
	}
	seen := make([]bool, len(s.Hosts))
	for rank, h := range s.Of {
		if rank%group == 0 == seen[h] || h != s.Of[rank/group*group] {
			return 0
		}
		seen[h] = true
	}
	return group
}

// inTurn reports whether rank r is on the host of rank r mod the number of hosts.
func (s *Shape) inTurn() bool {
	for rank, h := range s.Of {
		if h != s.Of[rank%len(s.Hosts)] {
			return false
		}
	}
	return true
}

// best puts the first of the choices that cost nearly the least, within so many percent, with the
// fewest frames before the others, which follow by cost. Of none it is none.
func best(all []Choice, percent int) []Choice {
	if len(all) == 0 {
		return nil
	}
	byCost := func(a, b Choice) int { return cmp.Compare(a.Cost, b.Cost) }
	limit := slices.MinFunc(all, byCost).Cost * time.Duration(100+percent) / 100
	first := slices.MinFunc(all, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(max(a.Cost, limit), max(b.Cost, limit)), cmp.Compare(a.Frames, b.Frames))
	})
	all = slices.DeleteFunc(all, func(c Choice) bool { return c.Algorithm.name == first.Algorithm.name })
	slices.SortStableFunc(all, byCost)
	return slices.Insert(all, 0, first)
}
