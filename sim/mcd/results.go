package mcd

import (
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// Tolerance is of a result's deviation from the paper's, a share.
const Tolerance = .1

// Figure is what the paper measured of an algorithm.
type Figure struct {
	Number int    // in the paper
	Source string // the section
	Title  string
	Points []Point
}

// Point is a mean time of a barrier.
type Point struct {
	Algorithm schedule.Algorithm
	Ranks     int
	Hub       bool          // not a switch
	Paper     time.Duration // 0: the figure has it, and the text does not
}

// Figures returns figures 5 to 10. The 3-ary tree is the heap of two children.
func Figures() []Figure {
	ternary, concurrent := schedule.Heap(2), schedule.Concurrent()
	powers, full := []int{2, 4, 8, 16, 32}, []int{3, 7, 15, 31} // full: of a heap of two children
	return []Figure{
		{5, "§4.3.1", "shuffle exchange", onBoth(schedule.Shuffle(), powers, 174, 3743)},
		{6, "§4.3.2", "binary tree", onBoth(schedule.Tree(2), powers, 204, 728)},
		{7, "§4.3.3", "3-ary tree", onBoth(ternary, full, 200, 675)},
		{8, "§4.3.4", "concurrent", onBoth(concurrent, powers, 309, 1059)},
		{9, "§4.4.1", "3-ary tree, one network and two", append(
			points(ternary, full[:3], false, 159),
			points(schedule.Stripe(ternary, 2), full[:3], false, 169)...)},
		{10, "§4.4.2", "concurrent, one network and two", append(
			points(concurrent, powers[:4], false, 179),
			points(schedule.Stripe(concurrent, 2), powers[:4], false, 147)...)},
	}
}

// onBoth returns an algorithm's points with the switch and with the hub.
func onBoth(a schedule.Algorithm, ranks []int, switched, hub time.Duration) []Point {
	return append(points(a, ranks, false, switched), points(a, ranks, true, hub)...)
}

// points returns an algorithm's points, the last of which took so many microseconds in the paper.
func points(a schedule.Algorithm, ranks []int, hub bool, last time.Duration) (all []Point) {
	for _, n := range ranks {
		all = append(all, Point{Algorithm: a, Ranks: n, Hub: hub})
	}
	all[len(all)-1].Paper = last * time.Microsecond
	return all
}

// hubRuns is how many runs a time with the hub is the mean of: one varies by some percent.
const hubRuns = 10

// Run returns what the model has. The seed is of backoffs.
func (p Point) Run(m *Model, seed uint64) time.Duration {
	if !p.Hub {
		return m.Switched(p.Algorithm, p.Ranks)
	}
	var sum time.Duration
	for i := range uint64(hubRuns) {
		sum += m.Repeated(p.Algorithm, p.Ranks, seed*hubRuns+i)
	}
	return sum / hubRuns
}

// Deviation is how much longer the model takes than the paper, a share; 0 if its text has no time.
func (p Point) Deviation(model time.Duration) float64 {
	if p.Paper == 0 {
		return 0
	}
	return float64(model)/float64(p.Paper) - 1
}
