package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/mpi"
)

// program is a rank's part. Its blocks are computed from each other: a step adds the sum of all
// cells to each.
type program struct {
	c      *mpi.Comm
	die    func() error
	step   int              // how many are done
	blocks [blocks][]uint64 // this rank's; nil: another one's

	// The memory that the rank before this one puts copies into, and this one those of its own: the
	// last two copies, each of all blocks. A block is led by the copy's number, from 1.
	memory []uint64
	copies *mpi.Win[uint64]
	made   int    // number of the last copy that was made whole
	stepOf [2]int // of the last two: the steps behind them
}

const copySize = blocks * (1 + cells)

var (
	errDead = errors.New("dead")
	errLost = errors.New("is lost: its rank has died, and the next one")
)

// run computes all steps. The victim dies on the way.
func (p *program) run(ctx context.Context, dies bool) error {
	p.begin()
	p.memory = make([]uint64, 2*copySize)
	err := p.prepare(ctx)
	for p.step < steps || err != nil {
		switch {
		case errors.Is(err, mpi.ErrProcessFailed) || errors.Is(err, mpi.ErrRevoked):
			err = p.recover(ctx)
		case err != nil:
			return err
		case dies && p.step == diesAt:
			fmt.Printf("rank %d dies after %d steps\n", p.c.Rank(), p.step)
			return errors.Join(p.die(), errDead)
		default:
			err = p.compute(ctx)
		}
	}
	return p.report(ctx)
}

// begin makes this rank's blocks, as they are before the first step.
func (p *program) begin() {
	for k := range p.blocks {
		p.blocks[k] = nil
		if k%p.c.Size() == p.c.Rank() {
			p.blocks[k] = firstBlock(k)
		}
	}
}

// prepare makes the window of copies, and the first copy.
func (p *program) prepare(ctx context.Context) (err error) {
	if p.copies, err = mpi.NewWin(ctx, p.c, p.memory); err != nil { // which is nil then
		return err
	}
	return p.copy(ctx)
}

// compute does a step.
func (p *program) compute(ctx context.Context) error {
	sum := []uint64{0}
	for _, b := range p.blocks {
		sum[0] += total(b)
	}
	if err := mpi.Allreduce(ctx, p.c, sum, sum, mpi.Sum[uint64]); err != nil {
		return err
	}
	for _, b := range p.blocks {
		advance(b, sum[0])
	}
	if p.step++; p.step%copyEvery == 0 {
		return p.copy(ctx)
	}
	return nil
}

// copy puts this rank's blocks into its own memory and that of the next rank, in place of the copy
// before the last.
func (p *program) copy(ctx context.Context) error {
	n := p.made + 1
	if err := p.copies.Fence(ctx); err != nil {
		return err
	}
	for k, b := range p.blocks {
		if b == nil {
			continue
		}
		led := append([]uint64{uint64(n)}, b...)
		for _, rank := range []int{p.c.Rank(), (p.c.Rank() + 1) % p.c.Size()} {
			if err := p.copies.Put(ctx, led, rank, placeOf(n, k)); err != nil {
				return err
			}
		}
	}
	if err := p.copies.Fence(ctx); err != nil {
		return err
	}
	p.made, p.stepOf[n%2] = n, p.step
	return nil
}

// placeOf returns where a copy has a block.
func placeOf(copy, block int) int { return copy%2*copySize + block*(1+cells) }

// recover goes back to the last copy that all survivors have, and shares the blocks among them.
func (p *program) recover(ctx context.Context) error {
	p.c.Revoke()
	if p.copies != nil {
		if err := p.copies.Free(ctx); err != nil {
			return err
		}
		p.copies = nil
	}
	c, err := p.c.Shrink(ctx)
	if err != nil {
		return err
	}
	p.c = c
	from := []int64{int64(p.made)}
	if err := mpi.Allreduce(ctx, c, from, from, mpi.Min[int64]); err != nil {
		return err
	}
	p.made = int(from[0])
	p.step = p.stepOf[p.made%2]
	if p.made == 0 { // there is no copy yet
		p.begin()
	} else if err := p.share(ctx); err != nil {
		return err
	}
	clear(p.memory[placeOf(p.made+1, 0):][:copySize]) // what came of a copy of that number is of other steps
	if c.Rank() == 0 {
		fmt.Printf("%d ranks go on from step %d\n", c.Size(), p.step)
	}
	return p.prepare(ctx)
}

// share gives each block to one of the ranks that have a copy of it, by turns.
func (p *program) share(ctx context.Context) error {
	has := make([]uint8, blocks)
	for k := range has {
		if p.memory[placeOf(p.made, k)] == uint64(p.made) {
			has[k] = 1
		}
	}
	all := make([]uint8, blocks*p.c.Size())
	if err := mpi.Allgather(ctx, p.c, has, all); err != nil {
		return err
	}
	for k := range p.blocks {
		var holders []int
		for rank := range p.c.Size() {
			if all[rank*blocks+k] == 1 {
				holders = append(holders, rank)
			}
		}
		if holders == nil {
			return fmt.Errorf("block %d %w", k, errLost)
		}
		p.blocks[k] = nil
		if holders[k%len(holders)] == p.c.Rank() {
			at := placeOf(p.made, k) + 1
			p.blocks[k] = slices.Clone(p.memory[at : at+cells])
		}
	}
	return nil
}

// report compares the result with that of one process.
func (p *program) report(ctx context.Context) error {
	sum := make([]uint64, blocks)
	for k, b := range p.blocks {
		sum[k] = total(b)
	}
	if err := mpi.Allreduce(ctx, p.c, sum, sum, mpi.Sum[uint64]); err != nil {
		return err
	}
	if want := alone(); !slices.Equal(sum, want) {
		return fmt.Errorf("blocks add up to %v, want %v", sum, want)
	}
	if p.c.Rank() == 0 {
		fmt.Printf("%d ranks: %d steps, and the result is that of one process\n", p.c.Size(), steps)
	}
	return p.c.Barrier(ctx)
}

func firstBlock(k int) []uint64 {
	b := make([]uint64, cells)
	for i := range b {
		b[i] = uint64(k*cells + i)
	}
	return b
}

// advance computes a block's next step.
func advance(b []uint64, sum uint64) {
	for i := range b {
		b[i] = b[i]*6364136223846793005 + sum
	}
}

func total(b []uint64) (sum uint64) {
	for _, cell := range b {
		sum += cell
	}
	return sum
}

// alone computes the blocks' sums in one process.
func alone() []uint64 {
	var all [blocks][]uint64
	for k := range all {
		all[k] = firstBlock(k)
	}
	sums := make([]uint64, blocks)
	for step := range steps + 1 {
		var sum uint64
		for k, b := range all {
			sums[k] = total(b)
			sum += sums[k]
		}
		if step == steps {
			break
		}
		for _, b := range all {
			advance(b, sum)
		}
	}
	return sums
}
