package main

import (
	"fmt"
	"math/bits"

	"github.com/rawlane/rawlane/examples/npb"
)

const axes = 3

// grid is a rank's place among the processes, of which there is a power of two along each axis.
type grid struct {
	processes [axes]int // along each axis
	at        [axes]int // this rank
}

// newGrid returns the place of a rank of a number of processes: a power of two, that leaves each
// four points of an edge, and so enough to choose charges among.
func newGrid(rank, processes, edge int) (g grid, err error) {
	power, err := npb.PowerOfTwo("MG", processes)
	if err != nil {
		return g, err
	}
	x := power / 3
	y := (power - x) / 2
	g.processes = [axes]int{1 << x, 1 << y, 1 << (power - x - y)}
	if 4*g.processes[2] > edge {
		return g, fmt.Errorf("%d processes are too many for %d points an edge", processes, edge)
	}
	for axis, n := range g.processes {
		g.at[axis] = rank % n
		rank /= n
	}
	return g, nil
}

// stride is the distance to the next process that has points, along an axis of so many of them: 1,
// but where there are more processes than points.
func (g grid) stride(axis, edge int) int { return max(1, g.processes[axis]/edge) }

// points is how many of an axis' points this rank has.
func (g grid) points(axis, edge int) int {
	if (g.at[axis]+1)%g.stride(axis, edge) != 0 {
		return 0
	}
	return max(1, edge/g.processes[axis])
}

// neighbour returns the rank at a distance along an axis, whose ends meet.
func (g grid) neighbour(axis, distance int) int {
	n := g.processes[axis]
	g.at[axis] = (g.at[axis] + distance + n) % n
	return g.at[0] + g.processes[0]*(g.at[1]+g.processes[1]*g.at[2])
}

// first returns the first of an axis' points that this rank has, if all ranks have some.
func (g grid) first(axis, edge int) int { return g.at[axis] * (edge / g.processes[axis]) }

// level is what a rank has of a grid of points, which is one of several: each has twice the points
// an edge of the one before it.
type level struct {
	size       [axes]int    // its points along each axis, and a border of one on both sides
	empty      bool         // it has none
	neighbours [axes][2]int // ranks: down, and up
	// take is where the rank has points here and none on the level below: neighbours that have some
	// there give it its first ones.
	take, give [axes]bool
}

// levels returns the levels of a cube, the coarsest first: of two points an edge.
func (g grid) levels(edge int) []level {
	all := make([]level, bits.Len(uint(edge))-1)
	for k := range all {
		l, points := &all[k], 2<<k
		for axis := range axes {
			here, stride := g.points(axis, points), g.stride(axis, points)
			l.size[axis] = here + 2
			l.empty = l.empty || here == 0
			l.neighbours[axis] = [2]int{g.neighbour(axis, -stride), g.neighbour(axis, stride)}
			if k > 0 && points/2 < g.processes[axis] {
				below := g.points(axis, points/2)
				l.take[axis], l.give[axis] = here > 0 && below == 0, below > 0
			}
		}
	}
	return all
}
