package main

import (
	"context"

	"github.com/rawlane/rawlane/mpi"
)

// borders brings what neighbours have to the border of a rank's block.
type borders struct {
	c         *mpi.Comm
	grid      *grid
	anySource bool // receives of faces name no source
	sent      []float64
	came      []float64
}

func newBorders(c *mpi.Comm, g *grid, anySource bool) *borders {
	b := &borders{c: c, grid: g, anySource: anySource}
	for axis := range axes {
		face := g.block().slab(axis, 0, border).points() * len(state{})
		b.came = make([]float64, max(len(b.came), face))
	}
	return b
}

// room returns memory for what comes for a box.
func (b *borders) room(part box) []float64 { return b.came[:len(state{})*part.points()] }

// beside returns a box' last points on the way in a direction, so many, and those of the border
// that the neighbour on the other side has as its last ones.
func (b *borders) beside(all box, axis, direction, points int) (last, behind box) {
	block := b.grid.block()
	first, end := block.first[axis], block.end[axis]
	if direction == up {
		return all.slab(axis, end-points, end), all.slab(axis, first-points, first)
	}
	return all.slab(axis, first, first+points), all.slab(axis, end, end+points)
}

// faces fills the border along an axis: what goes up first, as in NPB, and then what goes down.
func (b *borders) faces(ctx context.Context, f *field, axis int) error {
	for _, direction := range []int{up, down} {
		last, behind := b.beside(b.grid.block(), axis, direction, border)
		from, to := b.ends(axis, direction)
		var receive *mpi.Request
		if from != none {
			receive = b.expect(behind, from, tag(axis, direction))
		}
		if to != none {
			if err := b.send(ctx, f, last, to, tag(axis, direction)); err != nil {
				return err
			}
		}
		if from != none {
			if _, err := receive.Wait(ctx); err != nil {
				return err
			}
			f.setBox(behind, b.came)
		}
	}
	return nil
}

// expect posts the receive of a face.
func (b *borders) expect(part box, from, tag int) *mpi.Request {
	if b.anySource {
		from = mpi.AnySource
	}
	return mpi.Irecv(b.c, b.room(part), from, tag)
}

// await takes what the neighbours before this rank, in a sweep, have of a plane beside it.
func (b *borders) await(ctx context.Context, f *field, z, direction int) error {
	for axis := range axes {
		if from, _ := b.ends(axis, direction); from != none {
			_, behind := b.beside(b.plane(z), axis, direction, 1)
			if _, err := mpi.Recv(ctx, b.c, b.room(behind), from, tag(axis, direction)); err != nil {
				return err
			}
			f.setBox(behind, b.came)
		}
	}
	return nil
}

// pass gives what this rank has of a plane to those after it, in a sweep.
func (b *borders) pass(ctx context.Context, f *field, z, direction int) error {
	for axis := range axes {
		if _, to := b.ends(axis, direction); to != none {
			last, _ := b.beside(b.plane(z), axis, direction, 1)
			if err := b.send(ctx, f, last, to, tag(axis, direction)); err != nil {
				return err
			}
		}
	}
	return nil
}

// plane returns the points of a sweep that are in a plane.
func (b *borders) plane(z int) box { return b.grid.inside().slab(axes-1, z, z+1) }

// ends returns the neighbours that something in a direction comes from, and goes to.
func (b *borders) ends(axis, direction int) (from, to int) {
	n := b.grid.neighbours[axis]
	return n[1-direction], n[direction]
}

func (b *borders) send(ctx context.Context, f *field, part box, to, tag int) error {
	b.sent = f.appendBox(b.sent[:0], part)
	return mpi.Send(ctx, b.c, b.sent, to, tag)
}

// tag tells apart what goes along different axes, or in different directions.
func tag(axis, direction int) int { return 2*axis + direction }
