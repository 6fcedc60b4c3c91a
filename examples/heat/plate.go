package main

import (
	"context"
	"fmt"
	"math"

	"github.com/rawlane/rawlane/mpi"
)

// flow is the part of the difference between two neighbouring cells that passes in a step. Beyond
// 1/4 the steps are too long: errors grow.
const flow = 0.2

// grid is how ranks share the plate: row by row.
type grid struct{ rows, columns int }

// squarest returns the grid of a number of ranks that is most like a square.
func squarest(ranks int) grid {
	rows := int(math.Sqrt(float64(ranks)))
	for ranks%rows != 0 {
		rows--
	}
	return grid{rows, ranks / rows}
}

// block is a part of the plate: from its first row and column on.
type block struct{ top, left, height, width int }

// of returns the block of a rank.
func (g grid) of(rank, cells int) block {
	row, column := rank/g.columns, rank%g.columns
	b := block{top: cells * row / g.rows, left: cells * column / g.columns}
	b.height = cells*(row+1)/g.rows - b.top
	b.width = cells*(column+1)/g.columns - b.left
	return b
}

// The sides of a block. A side's opposite is side^1.
const (
	top = iota
	bottom
	left
	right
	sides
)

// neighbours returns the ranks beside a rank, by side; mpi.ProcNull is the edge of the plate.
func (g grid) neighbours(rank int) [sides]int {
	row, column := rank/g.columns, rank%g.columns
	n := [sides]int{rank - g.columns, rank + g.columns, rank - 1, rank + 1}
	for side, outside := range [sides]bool{row == 0, row == g.rows-1, column == 0, column == g.columns-1} {
		if outside {
			n[side] = mpi.ProcNull
		}
	}
	return n
}

// plate is a rank's part of the plate: its block, and around it ghost cells, which are copies of
// the neighbours' edges, or the plate's cold edge: 0.
type plate struct {
	c         *mpi.Comm
	cells     int // of each side of the whole plate
	ranks     grid
	block     block
	now, next []float64 // by rows of width+2

	edges, ghosts   [sides][]float64 // as they travel
	receives, sends [sides]*mpi.Persistent
	requests        []*mpi.Request // all of them
}

func newPlate(c *mpi.Comm, cells int) (*plate, error) {
	p := &plate{c: c, cells: cells, ranks: squarest(c.Size())}
	if p.ranks.columns > cells {
		return nil, fmt.Errorf("%d x %d ranks, and %d x %d cells: want no more ranks than cells either way",
			p.ranks.rows, p.ranks.columns, cells, cells)
	}
	p.block = p.ranks.of(c.Rank(), cells)
	p.now = make([]float64, (p.block.height+2)*(p.block.width+2))
	p.next = make([]float64, len(p.now))
	for side, neighbour := range p.ranks.neighbours(c.Rank()) {
		length := p.block.width
		if side == left || side == right {
			length = p.block.height
		}
		p.edges[side], p.ghosts[side] = make([]float64, length), make([]float64, length)
		// A message's tag is the side of its receiver that it is for.
		p.receives[side] = mpi.RecvInit(c, p.ghosts[side], neighbour, side)
		p.sends[side] = mpi.SendInit(c, p.edges[side], neighbour, side^1)
		p.requests = append(p.requests, &p.receives[side].Request, &p.sends[side].Request)
	}
	return p, nil
}

// stepTime is how long a step is.
func (p *plate) stepTime() float64 { return flow / float64((p.cells+1)*(p.cells+1)) }

// at returns where the cell of a row and a column of the block is: from 1 to its height and width.
func (p *plate) at(row, column int) int { return row*(p.block.width+2) + column }

// each calls f with each cell of the block, and its place on a plate of size 1.
func (p *plate) each(f func(cell *float64, x, y float64)) {
	size := float64(p.cells + 1)
	for row := 1; row <= p.block.height; row++ {
		for column := 1; column <= p.block.width; column++ {
			f(&p.now[p.at(row, column)], float64(p.block.left+column)/size, float64(p.block.top+row)/size)
		}
	}
}

// fill gives the plate its temperature.
func (p *plate) fill(temperature func(x, y float64) float64) {
	p.each(func(cell *float64, x, y float64) { *cell = temperature(x, y) })
}

// compare returns the largest difference, anywhere on the plate, from what the temperature should
// be.
func (p *plate) compare(ctx context.Context, temperature func(x, y float64) float64) (float64, error) {
	worst := []float64{0}
	p.each(func(cell *float64, x, y float64) { worst[0] = max(worst[0], math.Abs(*cell-temperature(x, y))) })
	err := mpi.Allreduce(ctx, p.c, worst, worst, mpi.Max)
	return worst[0], err
}

// step goes on by one step. All cells that need no neighbour are computed while edges travel.
func (p *plate) step(ctx context.Context) error {
	p.pack()
	for _, operations := range [][sides]*mpi.Persistent{p.receives, p.sends} {
		for _, o := range operations {
			if err := o.Start(); err != nil {
				return err
			}
		}
	}
	height, width := p.block.height, p.block.width
	p.update(2, height-1, 2, width-1)
	if err := mpi.WaitAll(ctx, p.requests...); err != nil {
		return err
	}
	p.unpack()
	p.update(1, 1, 1, width)
	p.update(height, height, 1, width)
	p.update(2, height-1, 1, 1)
	p.update(2, height-1, width, width)
	p.now, p.next = p.next, p.now
	return nil
}

// update computes the next temperature of the cells in some rows and columns, both ends included.
func (p *plate) update(firstRow, lastRow, firstColumn, lastColumn int) {
	n := lastColumn - firstColumn + 1
	if n <= 0 {
		return
	}
	for row := firstRow; row <= lastRow; row++ {
		from := func(row, column int) []float64 { return p.now[p.at(row, column):][:n] }
		above, below := from(row-1, firstColumn), from(row+1, firstColumn)
		before, behind := from(row, firstColumn-1), from(row, firstColumn+1)
		here, next := from(row, firstColumn), p.next[p.at(row, firstColumn):][:n]
		for k, v := range here {
			next[k] = v + flow*((above[k]+below[k])+(before[k]+behind[k])-4*v)
		}
	}
}

// pack copies the edges of the block to where they are sent from.
func (p *plate) pack() {
	height, width := p.block.height, p.block.width
	copy(p.edges[top], p.now[p.at(1, 1):])
	copy(p.edges[bottom], p.now[p.at(height, 1):])
	for k := range height {
		p.edges[left][k] = p.now[p.at(k+1, 1)]
		p.edges[right][k] = p.now[p.at(k+1, width)]
	}
}

// unpack copies the neighbours' edges, as they have come, around the block. Those of the plate's
// edge stay 0.
func (p *plate) unpack() {
	height, width := p.block.height, p.block.width
	copy(p.now[p.at(0, 1):], p.ghosts[top])
	copy(p.now[p.at(height+1, 1):], p.ghosts[bottom])
	for k := range height {
		p.now[p.at(k+1, 0)] = p.ghosts[left][k]
		p.now[p.at(k+1, width+1)] = p.ghosts[right][k]
	}
}

// gather returns all cells of the plate, by rows, at rank 0, and nil elsewhere.
func (p *plate) gather(ctx context.Context) ([]float64, error) {
	own := make([]float64, 0, p.block.height*p.block.width)
	for row := 1; row <= p.block.height; row++ {
		own = append(own, p.now[p.at(row, 1):][:p.block.width]...)
	}
	if p.c.Rank() != 0 {
		return nil, mpi.Gatherv(ctx, p.c, own, nil, 0)
	}
	blocks := make([][]float64, p.c.Size())
	for rank := range blocks {
		b := p.ranks.of(rank, p.cells)
		blocks[rank] = make([]float64, b.height*b.width)
	}
	if err := mpi.Gatherv(ctx, p.c, own, blocks, 0); err != nil {
		return nil, err
	}
	whole := make([]float64, p.cells*p.cells)
	for rank, values := range blocks {
		b := p.ranks.of(rank, p.cells)
		for row := range b.height {
			copy(whole[(b.top+row)*p.cells+b.left:], values[row*b.width:][:b.width])
		}
	}
	return whole, nil
}
