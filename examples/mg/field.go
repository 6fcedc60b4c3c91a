package main

import "slices"

// field is a number at each point of a rank's block, and of its border of one point: what the
// neighbours have there.
type field struct {
	size   [axes]int // with the border
	values []float64 // the first axis is that of neighbours in memory
}

func newField(size [axes]int) *field {
	return &field{size, make([]float64, size[0]*size[1]*size[2])}
}

// clear makes all numbers zero.
func (f *field) clear() { clear(f.values) }

// line returns the numbers along the first axis.
func (f *field) line(y, z int) []float64 {
	n := f.size[0]
	begin := n * (y + f.size[1]*z)
	return f.values[begin : begin+n : begin+n]
}

// box is the points from first to before end, along each axis.
type box struct{ first, end [axes]int }

// slab returns the points from first to before end along an axis, and all along the others.
func (f *field) slab(axis, first, end int) box {
	b := box{end: f.size}
	b.first[axis], b.end[axis] = first, end
	return b
}

// face returns the points at a place of an axis. Along the axes before it they have their border,
// which has come already; along those behind it they have none.
func (f *field) face(axis, at int) box {
	b := f.slab(axis, at, at+1)
	for later := axis + 1; later < axes; later++ {
		b.first[later], b.end[later] = 1, f.size[later]-1
	}
	return b
}

// appendBox appends the numbers of a box.
func (f *field) appendBox(numbers []float64, b box) []float64 {
	f.eachLine(b, func(part []float64) { numbers = append(numbers, part...) })
	return numbers
}

// setBox sets the numbers of a box, in the order of appendBox.
func (f *field) setBox(b box, numbers []float64) {
	f.eachLine(b, func(part []float64) { numbers = numbers[copy(part, numbers):] })
}

func (f *field) eachLine(b box, do func(part []float64)) {
	for z := b.first[2]; z < b.end[2]; z++ {
		for y := b.first[1]; y < b.end[1]; y++ {
			do(f.line(y, z)[b.first[0]:b.end[0]])
		}
	}
}

// inner returns the block without its border.
func (f *field) inner() box {
	b := box{first: [axes]int{1, 1, 1}}
	for axis, n := range f.size {
		b.end[axis] = n - 1
	}
	return b
}

// largestFace is how many numbers the largest face has.
func (f *field) largestFace() int {
	n := slices.Max(f.size[:])
	return n * n
}
