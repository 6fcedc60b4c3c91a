package main

import "fmt"

// state is what is known of the gas at a point, in a unit of its volume: the mass, the momentum
// along each axis, and the energy.
type state [5]float64

const (
	mass     = 0
	momentum = 1 // along the first axis
	energy   = 4
)

func (u state) String() (s string) {
	for _, v := range u {
		s += fmt.Sprintf(" %.13E", v)
	}
	return s
}

// add adds another state, times a factor.
func (u *state) add(factor float64, other *state) {
	for m, v := range other {
		u[m] += factor * v
	}
}

// Properties of the gas. NPB has them as products of its constants c1 to c5.
const (
	pressing   = 0.4       // pressure by heat of a unit of volume
	viscosity  = 0.1       // across
	lengthwise = 4.0 / 3   // viscosity along an axis, by that across
	conduction = 1.4 * 1.4 // of heat, by viscosity
)

// motion is a state's, in a unit of mass; or what a change of the state changes of it.
type motion struct {
	velocity [axes]float64
	kinetic  [axes]float64 // energy, of the velocity along each axis
	heat     float64       // the rest of the energy
}

func (u *state) motion() (m motion) {
	volume := 1 / u[mass]
	m.heat = volume * u[energy]
	for axis := range axes {
		v := volume * u[momentum+axis]
		m.velocity[axis], m.kinetic[axis] = v, v*v/2
		m.heat -= v * v / 2
	}
	return m
}

// change returns the change of a motion by one of the state: its derivative.
func (u *state) change(m *motion, by *state) (changed motion) {
	volume := 1 / u[mass]
	changed.heat = volume * (by[energy] - volume*u[energy]*by[mass])
	for axis, v := range m.velocity {
		dv := volume * (by[momentum+axis] - v*by[mass])
		changed.velocity[axis], changed.kinetic[axis] = dv, v*dv
		changed.heat -= v * dv
	}
	return changed
}

// pressure of the gas.
func (u *state) pressure(m *motion) float64 { return pressing * u[mass] * m.heat }

// carried returns what goes along an axis by the gas' velocity and its pressure.
func (u *state) carried(m *motion, axis int) (c state) {
	v, p := m.velocity[axis], u.pressure(m)
	c.add(v, u)
	c[momentum+axis] += p
	c[energy] += p * v
	return c
}

// carriedChange returns the change of what is carried.
func (u *state) carriedChange(m *motion, by *state, changed *motion, axis int) (c state) {
	v, dv := m.velocity[axis], changed.velocity[axis]
	p, dp := u.pressure(m), u.pressure(changed)+by.pressure(m)
	c.add(v, by)
	c.add(dv, u)
	c[momentum+axis] += dp
	c[energy] += dp*v + p*dv
	return c
}

// spread returns what evens out along an axis by viscosity and conduction of heat: its differences
// from point to point do. Of a changed motion it is the change.
func (m *motion) spread(axis int) (s state) {
	s[energy] = conduction*m.heat + (lengthwise-1)*m.kinetic[axis]
	for other := range axes {
		s[momentum+other] = m.velocity[other]
		s[energy] += m.kinetic[other]
	}
	s[momentum+axis] *= lengthwise
	return s
}
