package main

import (
	"math"
	"math/bits"
	"slices"

	"github.com/rawlane/rawlane/examples/npb"
)

// condition is the reciprocal of the matrix' condition number, before the shift.
const condition = 0.1

// matrix is a block of a sparse matrix: compressed sparse rows.
type matrix struct {
	ends    []int   // of each row in what follows
	columns []int32 // of the elements that are not 0, in the block
	values  []float64
}

// element is one of a sparse vector.
type element struct {
	at    int32
	value float64
}

// randomVectors makes the vectors that the matrix is made of. Vector k has 1/2 at k, and a number
// of random elements elsewhere.
func randomVectors(p problem) [][]element {
	random := npb.NewRandom(npb.Seed)
	random.Skip(1)
	power := float64(uint(1) << bits.Len(uint(p.rows-1))) // of two, not less than the rows
	vectors := make([][]element, p.rows)
	for k := range vectors {
		v := make([]element, 0, p.nonzeros+1)
		for len(v) < p.nonzeros {
			value := random.Float64()
			at := int32(power * random.Float64())
			if int(at) < p.rows && find(v, at) < 0 {
				v = append(v, element{at, value})
			}
		}
		if i := find(v, int32(k)); i >= 0 {
			v[i].value = 0.5
		} else {
			v = append(v, element{int32(k), 0.5})
		}
		vectors[k] = v
	}
	return vectors
}

// find returns the index of the element that is at a place, or -1.
func find(v []element, at int32) int {
	return slices.IndexFunc(v, func(e element) bool { return e.at == at })
}

// newMatrix makes a block of the matrix: the sum of w_k v_k v_k' over all vectors, with weights
// that fall from 1 to the condition, and on the diagonal the condition less the shift.
func newMatrix(p problem, rows, columns span) *matrix {
	vectors := randomVectors(p)
	// part is an element of vector k in a row, which adds a multiple of that vector to the row.
	type part struct {
		k      int
		weight float64 // of the vector
		value  float64
	}
	parts := make([][]part, rows.len())
	weight, ratio := 1.0, math.Pow(condition, 1/float64(p.rows))
	for k, v := range vectors {
		for _, e := range v {
			if row := int(e.at) - rows.first; row >= 0 && row < len(parts) {
				parts[row] = append(parts[row], part{k, weight, e.value})
			}
		}
		weight *= ratio
	}
	m := &matrix{ends: make([]int, len(parts))}
	sums, in := make([]float64, p.rows), make([]int, p.rows) // in[c] is row+1 where sums[c] is of that row
	for row, parts := range parts {
		begin := len(m.columns)
		for _, part := range parts {
			for _, e := range vectors[part.k] {
				if int(e.at) < columns.first || int(e.at) >= columns.end {
					continue
				}
				if in[e.at] != row+1 {
					in[e.at], sums[e.at] = row+1, 0
					m.columns = append(m.columns, e.at)
				}
				sums[e.at] += part.value * (part.weight * e.value)
			}
		}
		sums[rows.first+row] += condition - p.shift // of a block off the diagonal nobody looks at it
		for i, column := range m.columns[begin:] {
			m.values = append(m.values, sums[column])
			m.columns[begin+i] = column - int32(columns.first)
		}
		m.ends[row] = len(m.columns)
	}
	return m
}

// multiply computes the block's part of a product with a vector. Of that v has the elements at the
// block's columns.
func (m *matrix) multiply(v, result []float64) {
	begin := 0
	for row, end := range m.ends {
		columns, values := m.columns[begin:end], m.values[begin:end]
		var sum float64
		for k, column := range columns {
			sum += values[k] * v[column]
		}
		result[row] = sum
		begin = end
	}
}
