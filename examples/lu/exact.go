package main

// polynomials are the solution: of each number of a state a constant, and the factors of a place
// along the axes, of their squares, cubes and fourth powers.
var polynomials = [len(state{})]struct {
	constant float64
	powers   [4][axes]float64
}{
	{2, [4][axes]float64{{0, 0, 4}, {5, 3, .5}, {.02, .01, .03}, {.5, .4, .3}}},
	{1, [4][axes]float64{{0, 0, 0}, {1, 2, 3}, {.01, .03, .02}, {.4, .3, .5}}},
	{2, [4][axes]float64{{2, 0, 0}, {0, 2, 3}, {.04, .03, .05}, {.3, .5, .4}}},
	{2, [4][axes]float64{{2, 0, 0}, {0, 2, 3}, {.03, .05, .04}, {.2, .1, .3}}},
	{5, [4][axes]float64{{4, 3, 2}, {.1, .4, .3}, {.05, .04, .03}, {.1, .3, .2}}},
}

// exact returns the solution at a place of the cube, whose edges are 1.
func exact(place [axes]float64) (u state) {
	for m, p := range polynomials {
		u[m] = p.constant
		for axis, x := range place {
			power := 1.0
			for _, factors := range p.powers {
				power *= x
				u[m] += factors[axis] * power
			}
		}
	}
	return u
}

// initial returns what the gas is like at the beginning: the solution on the surface, and between
// opposite faces what they have, blended.
func initial(place [axes]float64, onSurface bool) (u state) {
	if onSurface {
		return exact(place)
	}
	u = state{1, 1, 1, 1, 1}
	for axis, x := range place {
		low, high := place, place
		low[axis], high[axis] = 0, 1
		a, b := exact(low), exact(high)
		for m := range u {
			u[m] *= 1 - ((1-x)*a[m] + x*b[m])
		}
	}
	for m := range u {
		u[m] = 1 - u[m]
	}
	return u
}
