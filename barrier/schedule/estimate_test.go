package schedule

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// gapped is costs that differ from each other, and are divided by four cores without a rest: its
// gap is longer than a send and a receive, and shorter than all of a message.
var gapped = LogP{Os: 1200, L: 400, Or: 800, Gap: 1600, Copy: 160, Switch: 3200}

// noGap has none: sends and receives follow each other at once.
var noGap = LogP{Os: 1200, L: 400, Or: 2000, Copy: 160, Switch: 3200}

// counted is a tree's way up, counted by hand.
type counted struct {
	k      int
	awaits []int // by phase: how many messages the root awaits
	turns  int   // of the ranks, each once and again for each phase in which it awaits some
}

// of70 and of50 are those of 70 and of 50 ranks.
var (
	of70 = []counted{
		{2, []int{1, 1, 1, 1, 1, 1, 1}, 70 + 35 + 17 + 8 + 4 + 2 + 1 + 1},
		{3, []int{2, 2, 2, 2}, 70 + 23 + 7 + 2 + 1},
		{4, []int{3, 3, 3, 1}, 70 + 17 + 4 + 1 + 1},
		{6, []int{5, 5, 1}, 70 + 11 + 1 + 1},
		{8, []int{7, 7, 1}, 70 + 8 + 1 + 1},
		{12, []int{11, 5}, 70 + 5 + 1},
		{16, []int{15, 4}, 70 + 4 + 1},
		{32, []int{31, 2}, 70 + 2 + 1},
	}
	of50 = []counted{
		{2, []int{1, 1, 1, 1, 1, 1}, 50 + 25 + 12 + 6 + 3 + 1 + 1},
		{3, []int{2, 2, 2, 1}, 50 + 16 + 5 + 1 + 1},
		{4, []int{3, 3, 3}, 50 + 12 + 3 + 1},
		{6, []int{5, 5, 1}, 50 + 8 + 1 + 1},
		{8, []int{7, 6}, 50 + 6 + 1},
		{12, []int{11, 4}, 50 + 4 + 1},
		{16, []int{15, 3}, 50 + 3 + 1},
		{32, []int{31, 1}, 50 + 1 + 1},
	}
)

// bound is Brent's, of so many cores: 0 is one each.
func bound(cores int, p LogP, path, work time.Duration) time.Duration {
	switch cores {
	case 0:
		return path
	case 4:
		return work/4 + (path+p.Switch)*3/4
	}
	panic("the costs are made for four cores")
}

// up is how long a tree's way up takes of so many ranks.
func (c counted) up(ranks, cores int, p LogP) time.Duration {
	path := time.Duration(0)
	for _, n := range c.awaits {
		path += p.Os + p.L + time.Duration(n-1)*max(p.Or, p.Gap) + p.Or
	}
	messages := time.Duration(ranks - 1)
	return bound(cores, p, path, time.Duration(c.turns)*p.Switch+messages*(p.Os+p.Or))
}

// same compares estimates with what they should be, by names and frames.
func same(t *testing.T, what string, got []Choice, want map[string]time.Duration, frames map[string]int) {
	t.Helper()
	for _, c := range got {
		name := c.Algorithm.String()
		if cost, is := want[name]; !is || c.Cost != cost {
			t.Errorf("%s: %s costs %v, want %v", what, name, c.Cost, cost)
		}
		if c.Frames != frames[name] || c.Frames != c.Algorithm.Frames(70) {
			t.Errorf("%s: %s has %d frames, want %d", what, name, c.Frames, frames[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d algorithms, want %d", what, len(got), len(want))
	}
}

// What 70 ranks cost on one host, with a core each and with four cores to share: the longest path
// of messages, and of shared cores Brent's bound of that and of the work.
func TestEstimates_OfOneHost(t *testing.T) {
	for _, p := range []LogP{gapped, noGap} {
		for _, cores := range []int{0, 4} {
			hop, receive, send := p.Os+p.L+p.Or, max(p.Or, p.Gap), max(p.Os, p.Gap)
			release := bound(cores, p, hop+68*p.Copy, 69*(p.Switch+p.Or+p.Copy))
			gather := bound(cores, p, hop+68*receive, 71*p.Switch+69*(p.Os+p.Or))
			down := func(path time.Duration) time.Duration {
				return bound(cores, p, path, 69*(p.Switch+p.Os+p.Or))
			}
			want := map[string]time.Duration{
				"shuffle":    bound(cores, p, 7*hop, 7*70*(p.Switch+p.Os+p.Or)),
				"concurrent": gather + release,
				"treetree:2": of70[0].up(70, cores, p) + down(7*hop),
				"treetree:4": of70[2].up(70, cores, p) + down(3*(hop+2*send)+hop),
				"star":       gather + down(hop+68*send),
			}
			frames := map[string]int{"shuffle": 7 * 70, "concurrent": 70, "treetree:2": 138, "treetree:4": 138, "star": 138}
			for _, c := range of70 {
				name := Tree(c.k).String()
				want[name], frames[name] = c.up(70, cores, p)+release, 70
			}
			shape := OneHost(70, cores, p)
			same(t, shape.String(), shape.Choices(), want, frames)
			p.Cores = cores
			same(t, "of shared cores", Choices(70, p), want, frames)
		}
	}
}

// What 70 ranks cost on hosts of 50 and of 20 with four cores each: the larger one is the slower
// in all that goes on within hosts, and between them is one message.
func TestEstimates_OfHosts(t *testing.T) {
	p, q := gapped, LogP{Os: 7000, L: 90000, Or: 5000, Gap: 11000, Copy: 40, Switch: 9}
	hop, between := p.Os+p.L+p.Or, q.Os+q.L+q.Or
	release := q.Os + q.L + 49*p.Copy + bound(4, p, q.Or, 50*(p.Switch+q.Or))
	gather := bound(4, p, hop+48*p.Gap, 51*p.Switch+49*(p.Os+p.Or))
	down := func(path time.Duration) time.Duration { return bound(4, p, path, 49*(p.Switch+p.Os+p.Or)) }
	four := of50[2].up(50, 4, p)
	levels := map[string]time.Duration{
		"star:shuffle":          gather + between + down(hop+48*p.Gap),
		"treetree:4:shuffle":    four + between + down(3*(hop+2*p.Gap)),
		"star:concurrent":       gather + between + release,
		"star:tree:2":           gather + between + release,
		"treetree:4:concurrent": four + between + release,
		"treetree:4:tree:2":     four + between + release,
	}
	shape := hostsOf(4, p, 50, 20)
	shape.Between = q
	want, frames := map[string]time.Duration{}, map[string]int{}
	for name, cost := range levels {
		want["hier:50:"+name], frames["hier:50:"+name] = cost, 70
	}
	frames["hier:50:star:shuffle"], frames["hier:50:treetree:4:shuffle"] = 2+2*68, 2+2*68
	want["shuffle"] = 7*between + bound(4, p, 0, 7*50*(p.Switch+q.Os+q.Or))
	frames["shuffle"] = 7 * 70
	for _, c := range of50 {
		name := Tree(c.k).String()
		want[name], frames[name] = c.up(50, 4, p)+between+release, 70
	}
	same(t, shape.String(), shape.Choices(), want, frames)

	// Ranks in another order: each phase of a flat algorithm has messages between hosts.
	slices.Reverse(shape.Of)
	shape.Of[0], shape.Of[69] = shape.Of[69], shape.Of[0]
	if got := shape.Of; got[0] != 0 || got[1] != 1 {
		t.Fatalf("the order is %v", got)
	}
	for name, cost := range levels {
		delete(want, "hier:50:"+name)
		delete(frames, "hier:50:"+name)
		name = "hosts:" + name
		want[name], frames[name] = cost, 70
	}
	frames["hosts:star:shuffle"], frames["hosts:treetree:4:shuffle"] = 2+2*68, 2+2*68
	for i, c := range of70 {
		work := time.Duration(of50[i].turns)*p.Switch + 50*(q.Os+q.Or)
		want[Tree(c.k).String()] = c.up(70, 0, q) + bound(4, p, 0, work) + release
	}
	all := shape.Choices()
	for i := range all {
		if name, is := strings.CutPrefix(all[i].Algorithm.name, "hosts:"); is {
			all[i].Algorithm.name = "hosts:" + name[9:] // without the digest
		}
	}
	same(t, "in another order", all, want, frames)
}

// dealt is a shape of hosts that have ranks in turn.
func dealt(size, hosts, cores int, local LogP) (s Shape) {
	for range hosts {
		s.Hosts = append(s.Hosts, Host{Cores: cores, Local: local})
	}
	for rank := range size {
		s.Of = append(s.Of, rank%hosts)
	}
	return s
}

// A shuffle of ranks that are dealt in turn has two phases between four hosts, and the others within
// them, unless the last hosts have fewer: then each phase has messages between hosts. Where messages
// within a host cost more than those between, a tree has both.
func TestEstimates_OfRanksInTurn(t *testing.T) {
	q := LogP{Os: 700, L: 90000, Or: 500, Gap: 11000, Copy: 40, Switch: 9}
	p := gapped
	hop, between := p.Os+p.L+p.Or, q.Os+q.L+q.Or
	for size, want := range map[int]time.Duration{96: 2*between + 5*hop, 98: 7 * between} {
		for _, cores := range []int{0, 4} {
			s := dealt(size, 4, cores, p)
			s.Between = q
			choices := s.Choices()
			i := slices.IndexFunc(choices, func(c Choice) bool { return c.Algorithm.name == "shuffle" })
			ranks := time.Duration((size + 3) / 4)
			if got, want := choices[i].Cost, want+bound(cores, p, 0, 7*ranks*(p.Switch+q.Os+q.Or)); got != want {
				t.Errorf("%d ranks, %d cores: %v, want %v", size, cores, got, want)
			}
		}
	}
	s := dealt(96, 4, 4, p)
	s.Between = q
	e := estimator{Shape: &s, sites: s.sites(), leaders: site{ranks: 4, p: q}}
	turns := time.Duration(24 + 12 + 6 + 3 + 1 + 1)
	way := 7*between + bound(4, p, 0, turns*p.Switch+24*(p.Os+p.Or))
	if got := e.flatUp(2); got != way {
		t.Errorf("a binary tree's way up takes %v, want %v", got, way)
	}
}

// Whatever way ranks are spread over hosts, some of what is considered has a name that Parse takes:
// a command can measure that, and write it down.
func TestShape_HasChoicesThatParse(t *testing.T) {
	for _, size := range []int{60, 96} {
		shape := dealt(size, 4, 8, KernelCosts)
		parsed := 0
		for _, c := range shape.Choices() {
			if _, err := Parse(c.Algorithm.String()); err == nil {
				parsed++
			}
		}
		if parsed == 0 {
			t.Errorf("%d ranks: none", size)
		}
	}
}

// A release costs the host of rank 0 a copy for each of its ranks, and no other host.
func TestEstimates_WhoCopies(t *testing.T) {
	for sender, other := range map[int]int{0: 1, 1: 0} {
		shape := hostsOf(4, gapped, 50, 20)
		i := slices.Index(shape.Of, sender)
		shape.Of[0], shape.Of[i] = sender, shape.Of[0]
		before := shape.Choices()
		shape.Hosts[other].Local.Copy += 16
		if got := shape.Choices(); !slices.EqualFunc(got, before, func(a, b Choice) bool { return a.Cost == b.Cost }) {
			t.Errorf("rank 0 on host %d: what a copy costs on host %d counts", sender, other)
		}
		shape.Hosts[sender].Local.Copy += 16
		most := time.Duration(0)
		for i, c := range shape.Choices() {
			most = max(most, c.Cost-before[i].Cost)
		}
		if want := time.Duration(16 * (len(shape.members()[sender]) - 1)); most != want {
			t.Errorf("rank 0 on host %d: copies cost %v more, want %v", sender, most, want)
		}
	}
}

// What differs is looked at once: of hosts that are alike, one stands for all.
func TestEstimates_LookAtHostsThatDiffer(t *testing.T) {
	shape := hostsOf(4, gapped, 3, 9, 3, 5, 9, 3)
	shape.Hosts[5].Cores = 2
	asked := map[site]int{}
	e := estimator{Shape: &shape, sites: shape.sites()}
	longest := e.longest(func(at site) time.Duration {
		asked[at]++
		return time.Duration(at.ranks)
	})
	want := map[site]int{{3, 0, gapped}: 1, {9, 4, gapped}: 1, {5, 4, gapped}: 1, {3, 2, gapped}: 1}
	if !maps.Equal(asked, want) || longest != 9 {
		t.Errorf("%v, and the longest is %d", asked, longest)
	}
}

// If a gap is longer than a message takes, the child that is told last is the last to hear. If not,
// it is the one below whom there are most. On the way up each phase is as long as the root's awaits.
func TestEstimates_OfTrees(t *testing.T) {
	for _, c := range []struct {
		what     string
		ranks, k int
		gap      time.Duration
		down, up time.Duration
	}{
		{"no rank to tell", 1, 2, 0, 0, 0},
		{"one", 2, 2, 10000, 2400, 2400},
		{"three phases, told in turn", 8, 2, 10000, 2*10000 + 2400, 3 * 2400},
		{"three phases, one below the other", 8, 2, 0, 3 * 2400, 3 * 2400},
		{"the last phase has one child, below whom there are two", 12, 3, 0, 2400 + 2*(2400+1200), 3*2400 + 2*800},
		{"the last phase has one child, below whom there are eight", 18, 3, 0, 2400 + 2*(2400+1200), 3*2400 + 2*800},
		{"the last phase has the second child, too", 19, 3, 0, 3 * (2400 + 1200), 3 * (2400 + 800)},
		{"flat", 5, 5, 1500, 3*1500 + 2400, 3*1500 + 2400},
	} {
		s := site{ranks: c.ranks, p: LogP{Os: 1200, L: 400, Or: 800, Gap: c.gap}}
		if down, up := s.down(c.k), s.up(c.k); down != c.down || up != c.up {
			t.Errorf("%s: down %v, want %v; up %v, want %v", c.what, down, c.down, up, c.up)
		}
	}
}

// Up to maxWalk ranks a shape's costs are walks', and beyond they are estimates: no walk is taken,
// though it would say other.
func TestShape_WhatIsWalked(t *testing.T) {
	for size, want := range map[int]bool{maxWalk - 1: true, maxWalk: true, maxWalk + 1: false, maxWalk + 2: false} {
		for name, s := range map[string]Shape{
			"one host": OneHost(size, 4, KernelCosts), "two": hostsOf(4, KernelCosts, size-20, 20),
		} {
			walked := true
			for _, c := range s.Choices() {
				walked = walked && c.Cost == s.Cost(c.Algorithm)
			}
			if walked != want {
				t.Errorf("%s, %d ranks: walked: %v, want %v", name, size, walked, want)
			}
			if got := best(s.estimates(), s.nearly()); !want && !slices.EqualFunc(got, s.Choices(), func(a, b Choice) bool {
				return a.Cost == b.Cost && a.Frames == b.Frames && a.Algorithm.name == b.Algorithm.name
			}) {
				t.Errorf("%s, %d ranks: not the estimates", name, size)
			}
		}
	}
}

// What counts as nearly the same is the same for walks and for estimates: of ranks that share the
// cores of one host a quarter more.
func TestShape_NearlyOfManyRanks(t *testing.T) {
	for size, cores := range map[int]int{37: 11, 74: 18} {
		shape := OneHost(size, cores, FabricCosts)
		choices := shape.Choices()
		least := slices.MinFunc(choices, func(a, b Choice) int { return cmp.Compare(a.Cost, b.Cost) })
		concurrent := slices.IndexFunc(choices, func(c Choice) bool { return c.Algorithm.name == "concurrent" })
		switch over := 100*choices[concurrent].Cost/least.Cost - 100; {
		case over <= nearly || over > nearlyShared:
			t.Errorf("%d ranks: concurrent costs %d %% more than the least: want more than %d", size, over, nearly)
		case concurrent != 0:
			t.Errorf("%d ranks: %v, want concurrent, which costs %d %% more", size, choices[0].Algorithm, over)
		}
	}
}

// As many cores as ranks, or more, are one each: none is shared, whether costs are walked or
// estimated.
func TestChoices_AsManyCoresAsRanks(t *testing.T) {
	for _, size := range []int{5, 70} {
		own, shared := Choices(size, KernelCosts), 0
		for cores := size - 1; cores <= size+1; cores++ {
			for _, c := range Choices(size, SharedCores(cores)) {
				i := slices.IndexFunc(own, func(o Choice) bool { return o.Algorithm.name == c.Algorithm.name })
				if c.Cost != own[i].Cost {
					shared = max(shared, cores)
				}
			}
		}
		if shared != size-1 {
			t.Errorf("%d ranks: they share up to %d cores", size, shared)
		}
	}
}
