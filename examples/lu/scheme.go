package main

// What is added so that the solution stays smooth: second differences along each axis, and fourth
// ones.
const (
	smoothing2X, smoothing2Y, smoothing2Z = 0.75, 0.75, 1.0
	smoothing4                            = 0.25
)

// scheme is how the equations are written for points at a distance, and for steps of time.
type scheme struct {
	first, second float64 // differences' factors: 1 by twice the distance, and 1 by its square
	step          float64
}

func newScheme(edge int, step float64) scheme {
	n := float64(edge - 1)
	return scheme{first: n / 2, second: n * n, step: step}
}

// evened returns that of which the second differences along an axis change a state u. It is linear:
// of a change and its motion it is the change.
func (c *scheme) evened(u *state, m *motion, axis int) state {
	e := m.spread(axis)
	for i := range e {
		e[i] *= viscosity * c.second
	}
	e.add(c.second*[axes]float64{smoothing2X, smoothing2Y, smoothing2Z}[axis], u)
	return e
}

// line is what goes from each point of a line to its neighbours.
type line struct{ carried, evened []state }

// rate adds to a field, inside the cube, how fast what goes along an axis changes u.
func (c *scheme) rate(g *grid, l *line, axis int, u, to *field) {
	inside := g.inside()
	first, end := inside.first[axis], inside.end[axis]
	stride := u.stride[axis]
	u.each(inside.slab(axis, 0, 1), func(at [axes]int, _ *state) {
		begin := u.index(at)
		for i := first - 1; i <= end; i++ {
			here := &u.states[begin+i*stride]
			m := here.motion()
			l.carried[i] = here.carried(&m, axis)
			l.evened[i] = c.evened(here, &m, axis)
			if !g.outermost(axis, i) { // whose second differences count as zero
				l.evened[i].add(-smoothing4, &u.states[begin+(i-1)*stride])
				l.evened[i].add(2*smoothing4, here)
				l.evened[i].add(-smoothing4, &u.states[begin+(i+1)*stride])
			}
		}
		for i := first; i < end; i++ {
			r := &to.states[begin+i*stride]
			for m := range r {
				r[m] += c.first*(l.carried[i-1][m]-l.carried[i+1][m]) +
					l.evened[i-1][m] - 2*l.evened[i][m] + l.evened[i+1][m]
			}
		}
	})
}

// coupled adds to a sum what a change of a neighbour's state along an axis does to a point in a
// step, of a sweep in a direction: the product of a block of the system's matrix, beside the
// diagonal, and the change.
func (c *scheme) coupled(sum *state, axis, direction int, u, by *state) {
	m := u.motion()
	changed := u.change(&m, by)
	carried := u.carriedChange(&m, by, &changed, axis)
	evened := c.evened(by, &changed, axis)
	sign := 1.0
	if direction == up { // the neighbour is below
		sign = -1
	}
	sum.add(sign*c.step*c.first, &carried)
	sum.add(-c.step, &evened)
}

// solved returns the change of a state that alone makes up for b in a step: the product of the
// inverse of a block on the diagonal and b. That block is triangular: of the mass all others
// depend, and on all others the energy.
func (c *scheme) solved(u, b *state) (w state) {
	m := u.motion()
	even := 2 * c.step * c.second
	own := 1 + even*(smoothing2X+smoothing2Y+smoothing2Z)
	drag := even * viscosity * (lengthwise + axes - 1) / u[mass]
	heat := even * viscosity * axes * conduction / u[mass]
	w[mass] = b[mass] / own
	kinetic := 0.0
	for axis, v := range m.velocity {
		w[momentum+axis] = (b[momentum+axis] + drag*v*w[mass]) / (own + drag)
		kinetic += v * (w[momentum+axis] - v*w[mass])
	}
	w[energy] = (b[energy] - (drag-heat)*kinetic + heat*u[energy]/u[mass]*w[mass]) / (own + heat)
	return w
}
