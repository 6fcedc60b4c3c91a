package main

import "testing"

// Every point is one rank's, and neighbours are each other's, beside each other, as large along the
// other axes.
func TestGrid_Blocks(t *testing.T) {
	for _, edge := range []int{12, 33, 64} {
		for processes := 1; processes <= 16; processes *= 2 {
			all, points := make([]grid, processes), 0
			for rank := range all {
				g, err := newGrid(rank, processes, edge)
				if err != nil {
					t.Fatal(err)
				}
				all[rank] = g
				points += g.block().points()
			}
			if points != edge*edge*edge {
				t.Errorf("%d processes: %d points of %d an edge", processes, points, edge)
			}
			for rank, g := range all {
				for axis := range axes {
					checkNeighbour(t, all, rank, axis)
					if g.neighbours[axis][down] == none && g.first[axis] != 0 {
						t.Errorf("%d processes: rank %d begins at %v, and has no neighbour before it", processes, rank, g.first)
					}
				}
			}
		}
	}
}

func checkNeighbour(t *testing.T, all []grid, rank, axis int) {
	g := all[rank]
	above := g.neighbours[axis][up]
	if above == none {
		if end := g.first[axis] + g.size[axis]; end != g.edge {
			t.Errorf("%d processes: rank %d ends at %d along axis %d, and has no neighbour", len(all), rank, end, axis)
		}
		return
	}
	other := all[above]
	if other.neighbours[axis][down] != rank {
		t.Errorf("%d processes: rank %d has neighbour %d, which has %v", len(all), rank, above, other.neighbours[axis])
	}
	g.first[axis] += g.size[axis]
	g.size[axis] = other.size[axis]
	if g.first != other.first || g.size != other.size {
		t.Errorf("%d processes: rank %d, above rank %d along axis %d, is elsewhere", len(all), above, rank, axis)
	}
}
