package mcd

import (
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

const us = time.Microsecond

// The model's hosts have the paper's LogP parameters.
func TestMCD_5_1_1_LogP(t *testing.T) {
	m := Fitted()
	if m.Send != 3*us || m.Interrupt+m.Receive != 9500*time.Nanosecond || m.Interrupt+m.Sent != 6*us || m.Loop != 30*us {
		t.Errorf("%+v: o_s is 3 us, o_r 9.5 us, an interrupt of a sent frame 6 us", m)
	}
	if l := 2*m.DMA + 2*m.wire(); l != 17500*time.Nanosecond {
		t.Errorf("L is %v, want 17.5 us", l)
	}
}

// A model without the hosts' fitted costs is LogP: a barrier of ranks that enter at once takes what
// the formulas of §5.1.2 say.
func TestSwitched_IsLogP(t *testing.T) {
	m := Fitted()
	m.Interrupt, m.Receive, m.Sent, m.Step = 0, 9500*time.Nanosecond, 0, 0
	hop := 30 * us
	for _, c := range []struct {
		algorithm schedule.Algorithm
		ranks     int
		want      time.Duration
	}{
		{schedule.Shuffle(), 2, hop},
		{schedule.Shuffle(), 32, 5 * hop},
		{schedule.Tree(2), 2, 2 * hop},
		{schedule.Heap(2), 15, 3*(hop+9500*time.Nanosecond) + hop},
		{schedule.Concurrent(), 9, hop + 7*9500*time.Nanosecond + hop},
	} {
		// The release reaches rank 0 at once, and the others later: these begin the next barrier so much
		// later, and rank 0 waits for them. Their mean differs by what the ends of a loop do.
		got := m.Switched(c.algorithm, c.ranks)
		if off := (got - c.want).Abs(); off > c.want/50 {
			t.Errorf("%v, %d ranks: %v, want %v", c.algorithm, c.ranks, got, c.want)
		}
	}
}

// The numbers in the paper's text, with the switches that parameters were fitted to, and with the
// hub, where none was.
func TestMCD_4_Figures(t *testing.T) {
	m := Fitted()
	told := 0
	for _, f := range Figures() {
		for _, p := range f.Points {
			if p.Paper == 0 {
				continue
			}
			told++
			for seed := range uint64(2) {
				if d := p.Deviation(p.Run(&m, seed)); max(d, -d) > Tolerance {
					t.Errorf("figure %d, %v, %d ranks, hub %v, seed %d: %+.1f %%, want within %.0f %%",
						f.Number, p.Algorithm, p.Ranks, p.Hub, seed, 100*d, 100*Tolerance)
				}
			}
		}
	}
	if told != 12 {
		t.Errorf("%d numbers of the paper, want 12", told)
	}
}

// What the paper says in words: which barrier is ahead, what a second network does, what the 32nd
// host costs a 3-ary tree, and where a hub is as good as a switch.
func TestMCD_4_Order(t *testing.T) {
	m := Fitted()
	switched := func(name string, ranks int) time.Duration { return m.Switched(parse(t, name), ranks) }
	hub := func(name string, ranks int) time.Duration {
		return Point{Algorithm: parse(t, name), Ranks: ranks, Hub: true}.Run(&m, 1)
	}
	for _, c := range []struct {
		source      string
		less, more  time.Duration
		least, most float64 // of more / less
	}{
		{"§4.3.2: the shuffle exchange is ahead of the binary tree", switched("shuffle", 32), switched("tree:2", 32), 1.1, 1.3},
		{"§4.3.3: the 3-ary tree is as good as the binary tree", switched("heap:2", 31), switched("tree:2", 32), 0.95, 1.1},
		{"§4.3.4: the concurrent barrier is behind", switched("tree:2", 32), switched("concurrent", 32), 1.3, 1.7},
		{"§4.3.1: 22 times as slow with the hub", switched("shuffle", 32), hub("shuffle", 32), 18, 24},
		{"§4.3.2: about the same with the hub, of few hosts", switched("tree:2", 4), hub("tree:2", 4), 0.85, 1.15},
		{"§3.2.1: with the hub, the tree is ahead of the shuffle exchange", hub("tree:2", 32), hub("shuffle", 32), 4, 6},
		{"§5.2: two networks cost the tree an interrupt each", switched("heap:2", 15), switched("stripe:2:heap:2", 15), 1.02, 1.12},
		{"§5.2: two networks save the concurrent barrier interrupts", switched("stripe:2:concurrent", 16), switched("concurrent", 16), 1.08, 1.3},
	} {
		if r := float64(c.more) / float64(c.less); r < c.least || r > c.most {
			t.Errorf("%s: %v and %v, %.2f times as long; want %.2f to %.2f", c.source, c.less, c.more, r, c.least, c.most)
		}
	}
	if more := switched("heap:2", 32) - switched("heap:2", 31); more < 8*us || more > 15*us {
		t.Errorf("§4.3.3: the 32nd host costs the 3-ary tree %v, want about 10 us", more)
	}
}

func parse(t *testing.T, name string) schedule.Algorithm {
	t.Helper()
	a, err := schedule.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A seed gives the same result always, and another seed another one.
func TestRepeated_Seeds(t *testing.T) {
	m := Fitted()
	one, again, other := m.Repeated(schedule.Shuffle(), 16, 1), m.Repeated(schedule.Shuffle(), 16, 1), m.Repeated(schedule.Shuffle(), 16, 2)
	if one != again || one == other {
		t.Errorf("%v and %v of one seed, %v of another", one, again, other)
	}
}

// Any schedule ends on either network: nothing is lost.
func TestModel_AllAlgorithms(t *testing.T) {
	m := Fitted()
	for _, name := range []string{"shuffle", "tree:4", "treetree:2", "heap:3", "concurrent", "star", "chassis", "redundant:2:tree:2", "stripe:3:concurrent"} {
		for _, ranks := range []int{2, 3, 7, 12} {
			t.Run(fmt.Sprintf("%s/%d", name, ranks), func(t *testing.T) {
				a := parse(t, name)
				if s, h := m.Switched(a, ranks), m.Repeated(a, ranks, 1); s < 20*us || h < 20*us {
					t.Errorf("%v with a switch, %v with a hub", s, h)
				}
			})
		}
	}
}
