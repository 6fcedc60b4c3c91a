package main

import "testing"

// Every point of every level is one rank's, neighbours are each other's, and who takes points on a
// level has neighbours that give.
func TestGrid_Levels(t *testing.T) {
	const edge = 32
	for processes := 1; processes <= 512; processes *= 2 {
		all := make([][]level, processes)
		for rank := range all {
			g, err := newGrid(rank, processes, edge)
			if err != nil {
				t.Fatal(err)
			}
			all[rank] = g.levels(edge)
			if g.neighbour(0, 0) != rank {
				t.Fatalf("%d processes: rank %d is at the place of %d", processes, rank, g.neighbour(0, 0))
			}
		}
		for k := range all[0] {
			points := 0
			for rank, levels := range all {
				size := levels[k].size
				points += (size[0] - 2) * (size[1] - 2) * (size[2] - 2)
				checkNeighbours(t, all, k, rank)
			}
			if edge := 2 << k; points != edge*edge*edge {
				t.Errorf("%d processes: %d points of %d an edge", processes, points, edge)
			}
		}
	}
}

func checkNeighbours(t *testing.T, all [][]level, k, rank int) {
	l := &all[rank][k]
	for axis := range axes {
		for direction, neighbour := range l.neighbours[axis] {
			other := &all[neighbour][k]
			if back := other.neighbours[axis][1-direction]; !l.empty && (back != rank || other.size != l.size) {
				t.Errorf("%d processes, level %d: rank %d has neighbour %d, which has %d", len(all), k, rank, neighbour, back)
			}
			if l.take[axis] && (!other.give[axis] || all[neighbour][k-1].size[axis] != 3) ||
				l.give[axis] && !other.take[axis] {
				t.Errorf("%d processes, level %d: rank %d is not given points by %d", len(all), k, rank, neighbour)
			}
		}
		if k > 0 && !l.take[axis] && l.size[axis] > 2 && all[rank][k-1].size[axis] == 2 {
			t.Errorf("%d processes, level %d: rank %d has no points below, and takes none", len(all), k, rank)
		}
	}
}
