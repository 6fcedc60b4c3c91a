package main

// border is how many points of its neighbours a block has around it, along each axis.
const border = 2

// field is a state at each point of a rank's block, and of its border.
type field struct {
	stride [axes]int // from a point to the next, along each axis
	states []state
}

func newField(size [axes]int) *field {
	f, n := &field{}, 1
	for axis, points := range size {
		f.stride[axis] = n
		n *= border + points + border
	}
	f.states = make([]state, n)
	return f
}

// index returns where in states a point is.
func (f *field) index(at [axes]int) int {
	return at[0] + at[1]*f.stride[1] + at[2]*f.stride[2]
}

// box is the points from first to before end, along each axis.
type box struct{ first, end [axes]int }

// slab returns those points of a box that are from first to before end along an axis.
func (b box) slab(axis, first, end int) box {
	b.first[axis], b.end[axis] = first, end
	return b
}

// points is how many there are.
func (b box) points() int {
	n := 1
	for axis, first := range b.first {
		n *= b.end[axis] - first
	}
	return n
}

// each calls do for each point of a box.
func (f *field) each(b box, do func(at [axes]int, u *state)) {
	for z := b.first[2]; z < b.end[2]; z++ {
		for y := b.first[1]; y < b.end[1]; y++ {
			for x := b.first[0]; x < b.end[0]; x++ {
				at := [axes]int{x, y, z}
				do(at, &f.states[f.index(at)])
			}
		}
	}
}

// appendBox appends the numbers of a box.
func (f *field) appendBox(numbers []float64, b box) []float64 {
	f.each(b, func(_ [axes]int, u *state) { numbers = append(numbers, u[:]...) })
	return numbers
}

// setBox sets the numbers of a box, in the order of appendBox.
func (f *field) setBox(b box, numbers []float64) {
	f.each(b, func(_ [axes]int, u *state) { numbers = numbers[copy(u[:], numbers):] })
}
