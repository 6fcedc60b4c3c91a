package main

import "math"

// Weights of a point's neighbours: those of distance 0, 1, 2 and 3 steps along axes. Those that are
// zero are left out: one step of the operator, three of the smoother.
const (
	operator0, operator2, operator3 = -8.0 / 3, 1.0 / 6, 1.0 / 12
	smoother0, smoother1, smoother2 = -3.0 / 8, 1.0 / 32, -1.0 / 64
)

// sums are of the lines around a line of points: the four beside it, and the four across.
type sums struct{ beside, across []float64 }

func newSums(n int) *sums { return &sums{make([]float64, n), make([]float64, n)} }

// around adds up the lines around one of f.
func (s *sums) around(f *field, y, z int) (beside, across []float64) {
	n := f.size[0]
	beside, across = s.beside[:n], s.across[:n]
	left, right, below, above := f.line(y-1, z)[:n], f.line(y+1, z)[:n], f.line(y, z-1)[:n], f.line(y, z+1)[:n]
	for x := range beside {
		beside[x] = left[x] + right[x] + below[x] + above[x]
	}
	left, right, below, above = f.line(y-1, z-1)[:n], f.line(y+1, z-1)[:n], f.line(y-1, z+1)[:n], f.line(y+1, z+1)[:n]
	for x := range across {
		across[x] = left[x] + right[x] + below[x] + above[x]
	}
	return beside, across
}

// residual computes r = v - A u inside the border. v may be r.
func (s *sums) residual(u, v, r *field) {
	for z := 1; z < u.size[2]-1; z++ {
		for y := 1; y < u.size[1]-1; y++ {
			beside, across := s.around(u, y, z)
			n := len(beside)
			from, to, of := v.line(y, z)[:n], r.line(y, z)[:n], u.line(y, z)[:n]
			for x := 1; x < n-1; x++ {
				to[x] = from[x] - operator0*of[x] -
					operator2*(across[x]+beside[x-1]+beside[x+1]) -
					operator3*(across[x-1]+across[x+1])
			}
		}
	}
}

// smooth computes u + S r inside the border: it corrects u by most of a residual that is rough.
func (s *sums) smooth(r, u *field) {
	for z := 1; z < u.size[2]-1; z++ {
		for y := 1; y < u.size[1]-1; y++ {
			beside, across := s.around(r, y, z)
			n := len(beside)
			to, of := u.line(y, z)[:n], r.line(y, z)[:n]
			for x := 1; x < n-1; x++ {
				to[x] += smoother0*of[x] +
					smoother1*(of[x-1]+of[x+1]+beside[x]) +
					smoother2*(across[x]+beside[x-1]+beside[x+1])
			}
		}
	}
}

// shift is 1 along the axes along which a rank has one point of a finer level: then its point of
// the coarser one, if it has one, is the same.
func shift(fine *field) (by [axes]int) {
	for axis, n := range fine.size {
		if n == 3 {
			by[axis] = 1
		}
	}
	return by
}

// restrict computes a level from the finer one above it: means of a point and its neighbours.
func (s *sums) restrict(fine, coarse *field) {
	by := shift(fine)
	for z := 1; z < coarse.size[2]-1; z++ {
		for y := 1; y < coarse.size[1]-1; y++ {
			fineY, fineZ := 2*y-by[1], 2*z-by[2]
			beside, across := s.around(fine, fineY, fineZ)
			to, of := coarse.line(y, z), fine.line(fineY, fineZ)
			for k := 1; k < len(to)-1; k++ {
				x := 2*k - by[0]
				to[k] = 0.5*of[x] +
					0.25*(of[x-1]+of[x+1]+beside[x]) +
					0.125*(beside[x-1]+beside[x+1]+across[x]) +
					0.0625*(across[x-1]+across[x+1])
			}
		}
	}
}

// interpolate adds a level to the finer one above it: there each second point along each axis lies
// between two of the coarser one, and gets their mean.
func (s *sums) interpolate(coarse, fine *field) {
	by := shift(fine)
	for z := range coarse.size[2] - 1 {
		for y := range coarse.size[1] - 1 {
			for between := range 4 {
				betweenY, betweenZ := between&1, between>>1
				fineY, fineZ := 2*y+betweenY-by[1], 2*z+betweenZ-by[2]
				if fineY < 0 || fineZ < 0 {
					continue
				}
				spread(s.mean(coarse, y, z, y+betweenY, z+betweenZ), fine.line(fineY, fineZ), by[0])
			}
		}
	}
}

// mean returns the mean of the four lines at y or y2, and z or z2; they may be the same.
func (s *sums) mean(f *field, y, z, y2, z2 int) []float64 {
	n := f.size[0]
	mean, a, b, c, d := s.beside[:n], f.line(y, z)[:n], f.line(y2, z)[:n], f.line(y, z2)[:n], f.line(y2, z2)[:n]
	for x := range mean {
		mean[x] = 0.25 * (a[x] + b[x] + c[x] + d[x])
	}
	return mean
}

// spread adds a line to one of the finer level.
func spread(coarse, fine []float64, by int) {
	for x := range len(coarse) - 1 {
		if at := 2*x - by; at >= 0 {
			fine[at] += coarse[x]
		}
		fine[2*x+1-by] += 0.5 * (coarse[x] + coarse[x+1])
	}
}

// squares returns the sum of a block's squares, and its largest absolute value.
func squares(f *field) (sum, largest float64) {
	f.eachLine(f.inner(), func(part []float64) {
		for _, v := range part {
			sum += v * v
			largest = max(largest, math.Abs(v))
		}
	})
	return sum, largest
}
