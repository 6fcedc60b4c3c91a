package schedule

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// costs are of each kind of path within a host.
var costs = map[string]LogP{
	"kernel": KernelCosts, "packet": PacketCosts, "memory": MemoryCosts, "fabric": FabricCosts, "machines": DefaultLogP,
}

// hostsOf is a shape of hosts with so many ranks each, in a row, and so many cores.
func hostsOf(cores int, local LogP, ranks ...int) (s Shape) {
	for h, n := range ranks {
		s.Hosts = append(s.Hosts, Host{Cores: cores, Local: local})
		for range n {
			s.Of = append(s.Of, h)
		}
	}
	return s
}

// On one host whose ranks share its cores, the model is that of LogP.Cores.
func TestShape_OfOneHostIsThatOfSharedCores(t *testing.T) {
	for cores := 1; cores <= 5; cores++ {
		for size := 1; size <= 20; size++ {
			s := OneHost(size, cores, KernelCosts)
			for _, c := range Choices(size, SharedCores(cores)) {
				if got := s.Cost(c.Algorithm); got != c.Cost {
					t.Errorf("%d ranks, %d cores: %v costs %v, want %v", size, cores, c.Algorithm, got, c.Cost)
				}
			}
		}
	}
}

// Where each rank has a host of its own, the model is that of a shape that is not known.
func TestShape_OfHostsOfOneRankIsUnknown(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 16, 40, 64, 65, 200} {
		s := Shape{}
		for rank := range size {
			s.Of = append(s.Of, rank)
			s.Hosts = append(s.Hosts, Host{Cores: 2, Local: KernelCosts})
		}
		unknown := Shape{}
		if got, want := s.Choose(size).String(), unknown.Choose(size).String(); got != want {
			t.Errorf("%d ranks: %s, want %s", size, got, want)
		}
		if got, want := unknown.Choose(size).String(), Auto().For(size).String(); got != want {
			t.Errorf("%d ranks of unknown hosts: %s, want %s", size, got, want)
		}
	}
}

// What is chosen for a shape, and what is said of it.
func TestShape_Choose(t *testing.T) {
	mixed := Shape{Of: []int{0, 1, 0, 1, 0, 1, 0, 1}, Hosts: hostsOf(2, KernelCosts, 4, 4).Hosts}
	for _, c := range []struct {
		shape      Shape
		want, says string
	}{
		{OneHost(2, 2, KernelCosts), "shuffle", "1 host: 2 ranks on a core each"},
		{OneHost(32, 2, KernelCosts), "concurrent", "1 host: 32 ranks on 2 cores"},
		{OneHost(4, 2, MemoryCosts), "concurrent", "1 host: 4 ranks on 2 cores"},
		{OneHost(8, 2, MemoryCosts), "concurrent", "1 host: 8 ranks on 2 cores"},
		{OneHost(32, 2, MemoryCosts), "concurrent", "1 host: 32 ranks on 2 cores"},
		{OneHost(4096, 2, KernelCosts), "concurrent", "1 host: 4096 ranks on 2 cores"},
		{hostsOf(2, KernelCosts, 8, 8), "tree:6", "2 hosts: 8 ranks on 2 cores"},
		{mixed, "", "2 hosts: 4 ranks on 2 cores; in turn"},
		{hostsOf(4, MemoryCosts, 8, 3, 8, 1), "",
			"2 hosts: 8 ranks on 4 cores; 1 host: 3 ranks on a core each; 1 host: 1 rank on a core each; spread f026794f"},
		{hostsOf(4, MemoryCosts, 3, 3, 1), "", "2 hosts: 3 ranks on a core each; 1 host: 1 rank on a core each"},
		{Shape{}, Auto().For(8).String(), "unknown hosts"},
	} {
		size := len(c.shape.Of)
		if size == 0 {
			size = 8
		}
		a := c.shape.Choose(size)
		if got := a.String(); c.want != "" && got != c.want {
			t.Errorf("%v: %s, want %s", c.shape, got, c.want)
		}
		if size <= 128 {
			if err := a.Check(size); err != nil {
				t.Error(err)
			}
		}
		if got := c.shape.String(); got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
}

// random returns a shape by a seed: hosts of any sizes, in a row or not.
func random(rng *rand.Rand, most int) Shape {
	var ranks []int
	for left := 2 + rng.IntN(most-1); left > 0; {
		n := 1 + rng.IntN(left)
		ranks = append(ranks, n)
		left -= n
	}
	kinds := []LogP{KernelCosts, MemoryCosts, FabricCosts}
	s := hostsOf(1+rng.IntN(6), kinds[rng.IntN(len(kinds))], ranks...)
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(s.Of), func(i, j int) { s.Of[i], s.Of[j] = s.Of[j], s.Of[i] })
	}
	return s
}

// shuffled returns a shape with its ranks in another order, always the same.
func shuffled(s Shape) Shape {
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(s.Of), func(i, j int) { s.Of[i], s.Of[j] = s.Of[j], s.Of[i] })
	return s
}

// Every candidate for every shape is a right schedule, its name tells it apart, and ranks that know
// the same shape choose the same.
func TestShape_CandidatesAreRight(t *testing.T) {
	for seed := range uint64(60) {
		s := random(rand.New(rand.NewPCG(seed, 1)), 24)
		size := len(s.Of)
		names := map[string]bool{}
		for _, c := range s.Choices() {
			if err := c.Algorithm.Check(size); err != nil {
				t.Errorf("seed %d: %v: %v", seed, s, err)
			}
			if names[c.Algorithm.String()] {
				t.Errorf("seed %d: two are named %v", seed, c.Algorithm)
			}
			names[c.Algorithm.String()] = true
		}
		again := random(rand.New(rand.NewPCG(seed, 1)), 24)
		if a, b := s.Choose(size).String(), again.Choose(size).String(); a != b {
			t.Errorf("seed %d: %s and %s", seed, a, b)
		}
	}
}

// What is considered for hosts: the algorithms that know none and, of several hosts of which one has
// several ranks, hierarchies of each of two inner ones and of those among so many leaders.
func TestShape_Candidates(t *testing.T) {
	each := func(hosts int) []int { return slices.Repeat([]int{2}, hosts) }
	for _, c := range []struct {
		shape Shape
		group string
		outer string
	}{
		{OneHost(9, 2, KernelCosts), "", ""},
		{hostsOf(2, KernelCosts, 1, 1, 1), "", ""},
		{hostsOf(2, KernelCosts, 8, 8), "hier:8:", "shuffle concurrent tree:2"},
		{hostsOf(2, KernelCosts, 2, 2, 1), "hier:2:", "shuffle concurrent tree:2"},
		{hostsOf(2, KernelCosts, each(4)...), "hier:2:", "shuffle concurrent tree:2"},
		{hostsOf(2, KernelCosts, each(5)...), "hier:2:", "shuffle concurrent tree:2 tree:4"},
		{hostsOf(2, KernelCosts, each(9)...), "hier:2:", "shuffle concurrent tree:2 tree:4 tree:8"},
		{hostsOf(2, KernelCosts, each(17)...), "hier:2:", "shuffle concurrent tree:2 tree:4 tree:8 tree:16"},
	} {
		var want, got []string
		for _, a := range candidates(len(c.shape.Of)) {
			want = append(want, a.String())
		}
		for _, outer := range strings.Fields(c.outer) {
			want = append(want, c.group+"star:"+outer, c.group+"treetree:4:"+outer)
		}
		for _, choice := range c.shape.Choices() {
			got = append(got, choice.Algorithm.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", c.shape, got, want)
		}
	}
}

// How near two costs are the same: on one host whose ranks share its cores a quarter, elsewhere what
// the model is exact to. A shape is crowded if one of its hosts has fewer cores than ranks.
func TestShape_Nearly(t *testing.T) {
	for _, c := range []struct {
		shape   Shape
		want    int
		crowded bool
	}{
		{OneHost(9, 8, KernelCosts), 25, true}, {OneHost(9, 9, KernelCosts), 5, false},
		{OneHost(9, 0, KernelCosts), 5, false}, {hostsOf(1, KernelCosts, 1, 1), 5, false},
		{hostsOf(1, KernelCosts, 2, 2), 5, true}, {hostsOf(1, KernelCosts, 1, 2), 5, true},
	} {
		if got := c.shape.Crowded(); got != c.crowded {
			t.Errorf("%v: crowded: %v, want %v", c.shape, got, c.crowded)
		}
		if got := c.shape.nearly(); got != c.want {
			t.Errorf("%v: %d %%, want %d", c.shape, got, c.want)
		}
	}
}

// The last choices are remembered, and no more than some of them.
func TestMemory(t *testing.T) {
	var m memory
	first := OneHost(3, 2, KernelCosts)
	for range 2 {
		m.choose(first)
	}
	if n := len(m.known()); n != 1 {
		t.Errorf("%d choices are known", n)
	}
	first.Of[0], first.Hosts[0].Cores = 7, 7 // the caller's, and not what is remembered
	if got := m.known()[0].shape; got.Of[0] != 0 || got.Hosts[0].Cores != 2 {
		t.Errorf("rank 0 is remembered on host %d, of %d cores", got.Of[0], got.Hosts[0].Cores)
	}
	for size := 2; size < 2+2*remembered; size++ {
		m.choose(OneHost(size, 2, KernelCosts))
	}
	if n := len(m.known()); n != remembered {
		t.Errorf("%d choices are known, want %d", n, remembered)
	}
}

// What is remembered for a shape is for that alone, and not for one that differs from it in whatever.
func TestMemory_TellsShapesApart(t *testing.T) {
	shape := func() Shape { return hostsOf(2, KernelCosts, 3, 2) }
	for name, change := range map[string]func(*Shape){
		"":                      func(*Shape) {},
		"a rank elsewhere":      func(s *Shape) { s.Of[2] = 1 },
		"a rank more":           func(s *Shape) { s.Of = append(s.Of, 1) },
		"a core more":           func(s *Shape) { s.Hosts[1].Cores++ },
		"other costs of a host": func(s *Shape) { s.Hosts[0].Local.Or++ },
		"other costs between":   func(s *Shape) { s.Between = LogP{L: 1} },
	} {
		var m memory
		m.list.Store(&[]choiceFor{{shape(), New("remembered", nil)}})
		s := shape()
		change(&s)
		if got := m.choose(s).String(); (got == "remembered") != (name == "") {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// Hosts of as many ranks in a row are groups: the schedule in levels, its labels too, is the same
// whichever way it is made, and also if the last host has fewer.
func TestLayout_OfRowsIsHierarchical(t *testing.T) {
	algorithms := []Algorithm{Star(), Shuffle(), Tree(2), TreeTree(2), ChassisRepeated()}
	for group := 2; group < 6; group++ {
		for size := group; size < 20; size++ {
			var rows [][]int
			for rank := range size {
				if rank%group == 0 {
					rows = append(rows, nil)
				}
				rows[rank/group] = append(rows[rank/group], rank)
			}
			l := newLayout(rows)
			for _, inner := range algorithms {
				for _, outer := range algorithms {
					want := Hierarchical(inner, outer, group)
					got := hierarchical("rows", inner, outer, l.divide)
					for rank := range size {
						if a, b := got.Steps(rank, size), want.Steps(rank, size); !reflect.DeepEqual(a, b) {
							t.Fatalf("%v, rank %d of %d: %v, want %v", want, rank, size, a, b)
						}
					}
				}
			}
		}
	}
}

// Two layouts have two names: members that disagree on them are told so.
func TestByHost_NamesTellLayoutsApart(t *testing.T) {
	a := Shape{Of: []int{0, 1, 1, 0}, Hosts: make([]Host, 2)}
	b := Shape{Of: []int{0, 1, 0, 1}, Hosts: make([]Host, 2)}
	row := Shape{Of: []int{1, 1, 0, 0}, Hosts: make([]Host, 2)}
	nameA, nameB := a.byHost()(Star(), Tree(2)).String(), b.byHost()(Star(), Tree(2)).String()
	if nameA == nameB {
		t.Errorf("both are %s", nameA)
	}
	if got := row.byHost()(Star(), Tree(2)).String(); got != "hier:2:star:tree:2" {
		t.Errorf("in a row: %s", got)
	}
}

// What is said of two layouts of the same hosts differs, so that a table has a row for each.
func TestShape_SaysHowRanksAreSpread(t *testing.T) {
	says := map[string]string{}
	for _, of := range []string{"00001111", "01010101", "01101001", "00110011", "01111000"} {
		s := Shape{Hosts: hostsOf(2, KernelCosts, 4, 4).Hosts}
		for _, h := range of {
			s.Of = append(s.Of, int(h-'0'))
		}
		if other, is := says[s.String()]; is {
			t.Errorf("%q of %s and of %s", s, of, other)
		}
		says[s.String()] = of
	}
	if got := OneHost(0, 2, KernelCosts).String(); got != "unknown hosts" && got != "" {
		t.Errorf("no rank: %q", got)
	}
}

// Estimates choose nearly as well as walks do: what they choose is walked, too. Sizes are some of
// those for which nobody walks.
func TestEstimates_ChooseNearlyAsWalksDo(t *testing.T) {
	const most = 33 // percent
	worst, at := 0.0, ""
	try := func(name string, s Shape) {
		chosen := best(s.estimates(), nearly)[0].Algorithm
		least := time.Duration(1 << 62)
		for _, a := range append(candidates(len(s.Of)), s.hierarchies()...) {
			least = min(least, s.Cost(a))
		}
		if over := 100 * (float64(s.Cost(chosen))/float64(least) - 1); over > worst {
			worst, at = over, fmt.Sprintf("%s: %v: %v", name, s, chosen)
		}
	}
	sizes, all := []int{66, 100, 128, 250}, []int{0, 1, 2, 4, 16, 48, 200}
	if testing.Short() {
		sizes, all = []int{66, 128}, []int{0, 2, 16}
	}
	for name, local := range costs {
		for _, size := range sizes {
			for _, cores := range all {
				try(name, OneHost(size, cores, local))
			}
		}
		for _, cores := range []int{0, 2, 8, 64} {
			try(name, hostsOf(cores, local, 33, 33))
			try(name, hostsOf(cores, local, 16, 16, 16, 16, 16, 16, 16, 16))
			try(name, hostsOf(cores, local, 60, 3, 3, 1, 9, 20))
			for _, hosts := range []int{2, 4, 24, 60} {
				try(name+", in turn", dealt(96, hosts, cores, local))
			}
			try(name+", in any order", shuffled(hostsOf(cores, local, 60, 3, 3, 1, 9, 20)))
			try(name+", two of which share a host", shuffled(hostsOf(cores, local, append(slices.Repeat([]int{1}, 70), 2)...)))
		}
	}
	t.Logf("at worst %.1f %% more than the best: %s", worst, at)
	if worst > most {
		t.Errorf("more than %d %%", most)
	}
}

// Where each rank has a core, an estimate is a walk's cost or up to a quarter more. What is
// estimated is what is walked for smaller groups.
func TestCandidates_EstimatesOfRanksWithCores(t *testing.T) {
	const most = 1.25
	for name, p := range costs {
		for _, size := range []int{65, 100, 128} {
			shape := OneHost(size, 0, p)
			var names, walked []string
			for _, a := range candidates(size) {
				walked = append(walked, a.String())
			}
			for _, c := range (site{ranks: size, p: p}).candidates() {
				names = append(names, c.Algorithm.String())
				if off := float64(c.Cost) / float64(shape.Cost(c.Algorithm)); off < 0.9999 || off > most {
					t.Errorf("%s, %v of %d: the estimate is %.3f times a walk's cost, want 1 to %v", name, c.Algorithm, size, off, most)
				}
			}
			slices.Sort(names)
			slices.Sort(walked)
			if !slices.Equal(names, walked) {
				t.Errorf("%d ranks: estimated are %v, walked %v", size, names, walked)
			}
		}
	}
}

// A host that comes again, and one that differs within its ranks, make a shape that has no groups.
func TestRegular(t *testing.T) {
	for _, c := range []struct {
		of   []int
		want int
	}{
		{[]int{0, 0, 1, 1, 2}, 2}, {[]int{0, 0, 1, 1, 0, 0}, 0}, {[]int{0, 0, 1, 2}, 0}, {[]int{0, 0, 1, 1, 1}, 0},
		{[]int{1, 1, 1, 0, 0, 0}, 3}, {[]int{0, 1, 0}, 0}, {[]int{0, 0, 0}, 3},
	} {
		s := Shape{Of: c.of, Hosts: make([]Host, 3)}
		if got := s.regular(); got != c.want {
			t.Errorf("%v: groups of %d, want %d", c.of, got, c.want)
		}
	}
}

func TestShape_HostsThatAreNot(t *testing.T) {
	for _, h := range []int{-1, 1, 2} {
		func() {
			want := fmt.Sprintf("schedule: rank 1 is on host %d of 1", h)
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v, want %s", got, want)
				}
			}()
			Shape{Hosts: []Host{{}}, Of: []int{0, h}}.Cost(Concurrent())
		}()
	}
}

// A choice for thousands of ranks takes less than a millisecond.
func BenchmarkChoose(b *testing.B) {
	many, small := slices.Repeat([]int{64}, 64), slices.Repeat([]int{8}, 512)
	cyclic := hostsOf(8, KernelCosts, many...)
	for rank := range cyclic.Of {
		cyclic.Of[rank] = rank % len(cyclic.Hosts)
	}
	for _, c := range []struct {
		name  string
		shape Shape
	}{
		{"host of 32", OneHost(32, 2, KernelCosts)},
		{"host of 64", OneHost(64, 2, KernelCosts)},
		{"host of 4096", OneHost(4096, 2, KernelCosts)},
		{"8 hosts of 8", hostsOf(4, KernelCosts, 8, 8, 8, 8, 8, 8, 8, 8)},
		{"64 hosts of 64", hostsOf(8, KernelCosts, many...)},
		{"64 hosts of 64, in turn", cyclic},
		{"512 hosts of 8", hostsOf(4, KernelCosts, small...)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.shape.Choices()
			}
		})
	}
	b.Run("unknown, 4096", func(b *testing.B) {
		for b.Loop() {
			Choices(4096)
		}
	})
}

// A host without a rank changes nothing, wherever it stands among the others.
func TestShape_HostWithoutARank(t *testing.T) {
	host, none := Host{Cores: 2, Local: KernelCosts}, Host{Cores: 1, Local: MemoryCosts}
	want := Shape{Of: []int{0, 1, 0, 1, 0, 1}, Hosts: []Host{host, host}}
	one := Shape{Of: make([]int, 4), Hosts: []Host{host}}
	many := Shape{Of: make([]int, maxWalk+1), Hosts: []Host{host, host}}
	many.Of[maxWalk] = 1
	for _, want := range []Shape{want, one, many} {
		for at := range len(want.Hosts) + 1 {
			got := Shape{Hosts: slices.Insert(slices.Clone(want.Hosts), at, none)}
			for _, h := range want.Of {
				if h >= at {
					h++
				}
				got.Of = append(got.Of, h)
			}
			if got.String() != want.String() || got.Crowded() != want.Crowded() ||
				got.Cost(Tree(2)) != want.Cost(Tree(2)) || fmt.Sprint(got.Choices()) != fmt.Sprint(want.Choices()) ||
				got.Choose(len(got.Of)).String() != want.Choose(len(want.Of)).String() {
				t.Errorf("%v, with another host at %d: %v, %v; want %v", want, at, got, got.Choices(), want.Choices())
			}
		}
	}
}
