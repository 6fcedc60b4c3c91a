package main

import (
	"context"
	"errors"

	"github.com/rawlane/rawlane/mpi"
)

// directions along an axis.
const (
	down = 0
	up   = 1
)

// borders exchanges faces of blocks with neighbours.
type borders struct {
	c         *mpi.Comm
	anySource bool // receives name no source
	sent      []float64
	came      [2][]float64 // going down, and going up
	receives  [2]*mpi.Request
}

// newBorders makes room for faces: two of the largest, as what is taken may have two.
func newBorders(c *mpi.Comm, anySource bool, largestFace int) *borders {
	room := func() []float64 { return make([]float64, 2*largestFace) }
	return &borders{c: c, anySource: anySource, sent: room()[:0], came: [2][]float64{room(), room()}}
}

// exchange fills the border of a field of a level. An axis is exchanged behind the ones before it,
// and carries on what those have brought: so edges and corners arrive without messages of their
// own. Each axis has its receives posted before it sends.
func (b *borders) exchange(ctx context.Context, l *level, f *field) error {
	if l.empty {
		f.clear()
		return nil
	}
	for axis, n := range f.size {
		if b.c.Size() == 1 {
			b.wrap(f, axis)
			continue
		}
		b.ready(l, axis)
		err := errors.Join(
			b.send(ctx, l, axis, up, f, f.face(axis, n-2)),
			b.send(ctx, l, axis, down, f, f.face(axis, 1)))
		if err != nil {
			return err
		}
		if err := b.receive(ctx, f, f.face(axis, n-1), f.face(axis, 0)); err != nil {
			return err
		}
	}
	return nil
}

// wrap is exchange along an axis of a rank that is alone.
func (b *borders) wrap(f *field, axis int) {
	n := f.size[axis]
	b.sent = f.appendBox(b.sent[:0], f.face(axis, n-2))
	f.setBox(f.face(axis, 0), b.sent)
	b.sent = f.appendBox(b.sent[:0], f.face(axis, 1))
	f.setBox(f.face(axis, n-1), b.sent)
}

// expand is behind an interpolation to a level on which more processes have points than on the one
// below: they get the numbers of these from neighbours. Of the one below that is its last point and
// the border behind it, of the one above its first point.
func (b *borders) expand(ctx context.Context, l *level, f *field) error {
	for axis, n := range f.size {
		if l.take[axis] {
			b.ready(l, axis)
			if err := b.receive(ctx, f, f.slab(axis, n-1, n), f.slab(axis, 0, 2)); err != nil {
				return err
			}
		}
		if l.give[axis] {
			err := errors.Join(
				b.send(ctx, l, axis, up, f, f.slab(axis, n-2, n)),
				b.send(ctx, l, axis, down, f, f.slab(axis, 1, 2)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// ready posts the receives of an axis: of what comes down from the neighbour above, and up from the
// one below.
func (b *borders) ready(l *level, axis int) {
	for direction := range b.receives {
		source := l.neighbours[axis][1-direction]
		if b.anySource {
			source = mpi.AnySource
		}
		b.receives[direction] = mpi.Irecv(b.c, b.came[direction], source, tag(axis, direction))
	}
}

func (b *borders) send(ctx context.Context, l *level, axis, direction int, f *field, part box) error {
	b.sent = f.appendBox(b.sent[:0], part)
	return mpi.Send(ctx, b.c, b.sent, l.neighbours[axis][direction], tag(axis, direction))
}

// receive waits for what ready has posted receives of, and sets the boxes to it.
func (b *borders) receive(ctx context.Context, f *field, fromAbove, fromBelow box) error {
	for direction, part := range [2]box{down: fromAbove, up: fromBelow} {
		if _, err := b.receives[direction].Wait(ctx); err != nil {
			return err
		}
		f.setBox(part, b.came[direction])
	}
	return nil
}

// tag tells apart what two ranks may send to each other at the same time: each can be the other's
// neighbour on both sides, and along one axis alone.
func tag(axis, direction int) int { return 2*axis + direction }
