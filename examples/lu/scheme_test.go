package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// gas returns some state, and change some small change of one.
func gas(rng *rand.Rand) state {
	u := state{1 + rng.Float64()}
	for axis := range axes {
		u[momentum+axis] = rng.Float64() - .5
	}
	u[energy] = 2 + rng.Float64()
	return u
}

func change(rng *rand.Rand) (w state) {
	for m := range w {
		w[m] = rng.Float64() - .5
	}
	return w
}

// What a neighbour's change does is the derivative of what a step adds: of minus what goes from the
// neighbour to the point, along an axis.
func TestScheme_Coupled(t *testing.T) {
	const tiny = 1e-6
	rng := rand.New(rand.NewPCG(1, 2))
	c := newScheme(12, .5)
	for range 100 {
		u, by := gas(rng), change(rng)
		for axis := range axes {
			for direction, sign := range [2]float64{down: -1, up: 1} { // a sweep down has its neighbour above
				flow := func(u state) state {
					m := u.motion()
					f := c.evened(&u, &m, axis)
					carried := u.carried(&m, axis)
					f.add(sign*c.first, &carried)
					return f
				}
				more, less := u, u
				more.add(tiny, &by)
				less.add(-tiny, &by)
				want, other := flow(more), flow(less)
				want.add(-1, &other)
				var got state
				c.coupled(&got, axis, direction, &u, &by)
				got.add(c.step/(2*tiny), &want)
				for m, v := range got {
					if math.Abs(v) > 1e-6 {
						t.Fatalf("axis %d, direction %d, number %d is off by %v", axis, direction, m, v)
					}
				}
			}
		}
	}
}

// What makes up for b in a step has what its own point loses by it: b, less what it gives to both
// sides along each axis. What a point gives is what its neighbours are coupled by, without what is
// carried, of which what comes on one side goes on the other.
func TestScheme_Solved(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := newScheme(12, .5)
	for range 100 {
		u, b := gas(rng), change(rng)
		w := c.solved(&u, &b)
		got, both := w, state{}
		for axis := range axes {
			c.coupled(&both, axis, down, &u, &w)
			c.coupled(&both, axis, up, &u, &w)
		}
		got.add(-1, &both)
		got.add(-1, &b)
		for m, v := range got {
			if math.Abs(v) > 1e-9 {
				t.Fatalf("number %d is off by %v", m, v)
			}
		}
	}
}
