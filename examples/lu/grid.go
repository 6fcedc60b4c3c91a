package main

import (
	"fmt"

	"github.com/rawlane/rawlane/examples/npb"
)

// axes of the cube of points. The cube is cut along the first two.
const axes = 3

// directions along an axis.
const (
	down = 0
	up   = 1
)

// none is the neighbour where the cube ends.
const none = -1

// grid is a rank's block of the cube.
type grid struct {
	edge       int          // of the cube
	first      [axes]int    // of the cube's points, along each axis
	size       [axes]int    // points along each axis
	neighbours [axes][2]int // ranks: down and up
}

// newGrid returns the block of a rank of a number of processes: a power of two, which leaves each
// three points along an axis. A block at the end of the cube has a point of its surface, and two
// inside that its neighbour needs.
func newGrid(rank, processes, edge int) (g grid, err error) {
	power, err := npb.PowerOfTwo("LU", processes)
	if err != nil {
		return g, err
	}
	y := power / 2
	x := power - y
	if edge>>x < 3 {
		return g, fmt.Errorf("%d processes are too many for %d points an edge", processes, edge)
	}
	g.edge = edge
	distance := 1 // of neighbours' ranks
	for axis, n := range [axes]int{1 << x, 1 << y, 1} {
		at := rank / distance % n
		g.neighbours[axis] = [2]int{rank - distance, rank + distance}
		if at == 0 {
			g.neighbours[axis][down] = none
		}
		if at == n-1 {
			g.neighbours[axis][up] = none
		}
		g.first[axis], g.size[axis] = at*(edge/n)+min(at, edge%n), edge/n
		if at < edge%n {
			g.size[axis]++
		}
		distance *= n
	}
	return g, nil
}

// outermost tells whether a place along an axis of a field is on the cube's surface.
func (g *grid) outermost(axis, at int) bool {
	i := g.first[axis] + at - border
	return i == 0 || i == g.edge-1
}

// block returns the places of this rank's points in a field.
func (g *grid) block() (b box) {
	for axis, n := range g.size {
		b.first[axis], b.end[axis] = border, border+n
	}
	return b
}

// inside returns the places of those of its points that are not on the cube's surface.
func (g *grid) inside() box {
	b := g.block()
	for axis, n := range g.neighbours {
		if n[down] == none {
			b.first[axis]++
		}
		if n[up] == none {
			b.end[axis]--
		}
	}
	return b
}

// place returns where in the cube a place of a field is: from 0 to 1 along each axis.
func (g *grid) place(at [axes]int) (place [axes]float64, onSurface bool) {
	for axis, i := range at {
		place[axis] = float64(g.first[axis]+i-border) / float64(g.edge-1)
		onSurface = onSurface || g.outermost(axis, i)
	}
	return place, onSurface
}
