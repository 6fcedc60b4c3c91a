package main

import (
	"slices"
	"testing"
)

// Every element of the matrix is in one block, each process's sums go where its columns are, and
// partners keep what they are given.
func TestGrid_BlocksAndPartners(t *testing.T) {
	for processes := 1; processes <= 256; processes *= 2 {
		for _, n := range []int{1400, 7000, 1403} {
			all, elements := make([]grid, processes), 0
			for rank := range all {
				all[rank], _ = newGrid(rank, processes)
				rows, columns := all[rank].block(n)
				elements += rows.len() * columns.len()
			}
			if elements != n*n {
				t.Fatalf("%d processes, %d rows: blocks of %d elements", processes, n, elements)
			}
			for rank, g := range all {
				rows, columns := g.block(n)
				other := all[g.transposed()]
				otherRows, otherColumns := other.block(n)
				if other.transposed() != rank || other.kept(otherRows) != columns || g.kept(rows) != otherColumns {
					t.Fatalf("%d processes, %d rows: rank %d has columns %v, and gets %v of rank %d",
						processes, n, rank, columns, other.kept(otherRows), g.transposed())
				}
				g.checkPartners(t, all, n, rank)
			}
		}
	}
}

func (g grid) checkPartners(t *testing.T, all []grid, n, rank int) {
	rows, _ := g.block(n)
	partners := g.partners()
	for i, partner := range partners {
		p := all[partner]
		kept := p.kept(rows)
		nearest := i == len(partners)-1
		if p.row != g.row || !slices.Contains(p.partners(), rank) ||
			nearest && kept != g.given(rows) || !nearest && kept != g.kept(rows) {
			t.Fatalf("%d processes, %d rows: rank %d and its partner %d", len(all), n, rank, partner)
		}
	}
}
