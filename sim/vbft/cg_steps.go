package vbft

import "math/bits"

// conjGrad returns what a process does in an iteration of the benchmark: one call of conj_grad, and a step of the power method.
//
// The processes are a square of rows*rows, process r*rows+c in row r and column c. Each has a part of the vectors, of
// order/rows numbers. A multiplication by the matrix leaves sums to add up among a row, by exchanging and adding them
// with the neighbour 1 away, then 2, and so on, all of the part each time; after that the vector lies along the rows, and
// goes back to the columns by an exchange with the process at the mirrored place. Scalar products are added up among a row, too.
//
//	row exchanges:  0 1 2 3     with rows=4: 0-1 2-3, then 0-2 1-3       stay in a switch
//	                4 5 6 7
//	mirror:         8 9 ...     1-4, 2-8, 3-12, 6-9, 7-13, 11-14         go between switches
//
// Source: NPB 3.2, CG/cg.f, setup_submatrix_info (reduce_exch_proc, exch_proc) and conj_grad; VFREC §2.4.
func conjGrad(rank, nodes, order int) []step {
	rows := 1 << (bits.TrailingZeros(uint(nodes)) / 2)
	row, column := rank/rows, rank%rows
	part := int64((order + rows - 1) / rows * wordBytes)
	var all []step
	exchange := func(partner int, bytes int64) {
		all = append(all, step{kind: exchanges, partner: partner, bytes: bytes})
	}
	scalars := func(numbers int64) {
		for d := rows / 2; d >= 1; d /= 2 {
			exchange(row*rows+column^d, numbers*wordBytes)
		}
	}
	multiply := func() {
		all = append(all, step{kind: computes})
		for d := 1; d < rows; d *= 2 {
			exchange(row*rows+column^d, part)
		}
		if mirror := column*rows + row; mirror != rank {
			exchange(mirror, part)
		}
	}
	scalars(1) // rho = r.r
	for range cgSteps {
		multiply() // q = A.p
		scalars(1) // d = p.q
		scalars(1) // rho = r.r
	}
	multiply() // A.z
	scalars(1) // |x - A.z|
	scalars(2) // x.z and z.z
	return all
}
