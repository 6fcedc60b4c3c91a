package main

import "github.com/rawlane/rawlane/examples/npb"

// span is the numbers from first to before end: rows or columns of the matrix.
type span struct{ first, end int }

func (s span) len() int { return s.end - s.first }

// grid is a rank's place among the processes, which are cut into rows and columns as the matrix is:
// as many of both, or twice as many columns.
type grid struct {
	rows, columns int // of processes; powers of two
	row, column   int // this rank's
}

// newGrid returns the place of a rank of a number of processes: a power of two.
func newGrid(rank, processes int) (g grid, err error) {
	power, err := npb.PowerOfTwo("CG", processes)
	if err != nil {
		return g, err
	}
	g.rows = 1 << (power / 2)
	g.columns = processes / g.rows
	g.row, g.column = rank/g.columns, rank%g.columns
	return g, nil
}

// square tells whether there are as many rows of processes as columns.
func (g grid) square() bool { return g.rows == g.columns }

// part returns the i-th of parts of n numbers, of which the first are longer by one if need be.
func part(n, i, parts int) span {
	size, rest := n/parts, n%parts
	first := i*size + min(i, rest)
	if i < rest {
		size++
	}
	return span{first, first + size}
}

// half returns the first or the second half of s, of which the first is not the shorter one.
func (s span) half(second bool) span {
	middle := s.first + (s.len()+1)/2
	if second {
		return span{middle, s.end}
	}
	return span{s.first, middle}
}

// block returns the rows and the columns of an n by n matrix that this rank has. If the grid is not
// square, two columns of processes share what a row of them has.
func (g grid) block(n int) (rows, columns span) {
	rows = part(n, g.row, g.rows)
	if g.square() {
		return rows, part(n, g.column, g.columns)
	}
	return rows, part(n, g.column/2, g.rows).half(g.column%2 == 1)
}

// kept returns those of this rank's rows whose sums it passes on: all, or the half of its column.
func (g grid) kept(rows span) span {
	if g.square() {
		return rows
	}
	return rows.half(g.column%2 == 1)
}

// given returns those of this rank's rows whose sums the neighbour in its row of processes keeps.
func (g grid) given(rows span) span {
	if g.square() {
		return rows
	}
	return rows.half(g.column%2 == 0)
}

// partners returns the ranks of this row of processes that this one sums up with, the farthest
// first: a butterfly.
func (g grid) partners() (ranks []int) {
	for distance := g.columns / 2; distance > 0; distance /= 2 {
		ranks = append(ranks, g.row*g.columns+g.column^distance)
	}
	return ranks
}

// transposed returns the rank whose columns are the rows that this one keeps, and the other way
// round. It may be this one.
func (g grid) transposed() int {
	if g.square() {
		return g.column*g.columns + g.row
	}
	return g.column/2*g.columns + 2*g.row + g.column%2
}
