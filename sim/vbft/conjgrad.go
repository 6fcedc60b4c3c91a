package vbft

import "math/bits"

// step is a computation, an exchange of bytes with another process in both directions, or a change
// of routes.
type step struct {
	kind    stepKind
	partner int
	bytes   int64
}

type stepKind uint8

const (
	computes stepKind = iota
	exchanges
	reroutes
)

// wordBytes is the length of a number.
const wordBytes = 8

// conjGrad returns what a process does in an iteration of the benchmark: a call of conj_grad, and
// a step of the power method.
//
// The processes are a square of rows*rows, number rows*r+c in row r and column c. Each has a part
// of the vectors, of order/rows numbers. A multiplication by the matrix leaves each process with
// a part of its row's sum. They exchange and add these with their neighbour 1 away, then 2, and
// so on, at full length each time. After that the vector lies along the rows, and goes back to
// the columns by an exchange with the process at the mirrored place. Scalar products are added up
// in the same way, one number long.
//
//	row:      0  1  2  3        with rows = 4: 0-1 and 2-3, then 0-2 and 1-3; inside a leaf
//	          4  5  6  7
//	mirror:   8  9 10 11        1-4, 2-8, 3-12, 6-9, 7-13, 11-14; from leaf to leaf
//	         12 13 14 15
//
// Source: NPB 3.2, CG/cg.f: setup_submatrix_info (reduce_exch_proc, exch_proc), conj_grad; VFREC
// §2.4, figure 4.
func conjGrad(rank, nodes, order int) (steps []step) {
	rows := 1 << (bits.TrailingZeros(uint(nodes)) / 2)
	row, column := rank/rows, rank%rows
	part := int64((order + rows - 1) / rows * wordBytes)
	exchange := func(partner int, bytes int64) {
		steps = append(steps, step{exchanges, partner, bytes})
	}
	multiply := func() {
		steps = append(steps, step{kind: computes})
		for d := 1; d < rows; d *= 2 {
			exchange(row*rows+column^d, part)
		}
		if mirror := column*rows + row; mirror != rank {
			exchange(mirror, part)
		}
	}
	sum := func(numbers int64) {
		for d := rows / 2; d >= 1; d /= 2 {
			exchange(row*rows+column^d, numbers*wordBytes)
		}
	}
	sum(1) // rho = r.r
	for range multiplications - 1 {
		multiply() // q = A.p
		sum(1)     // d = p.q
		sum(1)     // rho = r.r
	}
	multiply() // r = A.z
	sum(1)     // |x - r|
	sum(2)     // x.z and z.z
	return steps
}
