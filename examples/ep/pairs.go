package main

import (
	"context"
	"math"

	"github.com/rawlane/rawlane/examples/npb"
	"github.com/rawlane/rawlane/mpi"
)

const (
	seed       = 271828183 // of the random numbers
	batchPairs = 1 << 16
	rings      = 10 // squares around the origin, each of them one farther out
)

// tallies are what is known of pairs: sums of absolute values, and how many pairs lie in each ring.
type tallies struct {
	x, y   float64
	counts [rings]float64
}

// pairs returns how many pairs there are.
func (t *tallies) pairs() (sum float64) {
	for _, n := range t.counts {
		sum += n
	}
	return sum
}

// add adds up the tallies of all ranks.
func (t *tallies) add(ctx context.Context, c *mpi.Comm) error {
	x, y := []float64{t.x}, []float64{t.y}
	for _, numbers := range [][]float64{x, y, t.counts[:]} {
		if err := mpi.Allreduce(ctx, c, numbers, numbers, mpi.Sum); err != nil {
			return err
		}
	}
	t.x, t.y = x[0], y[0]
	return nil
}

// part returns the batches of a rank, from first to before end: the first ranks have one more if
// they do not come out even.
func part(batches, rank, ranks int) (first, end int) {
	size, rest := batches/ranks, batches%ranks
	first = rank*size + min(rank, rest)
	if rank < rest {
		size++
	}
	return first, first + size
}

// tally makes the pairs of batches from first to before end. The sequence of random numbers is one
// for all ranks, and batches follow each other in it.
//
// A point of the unit circle becomes a pair of normally distributed numbers by the polar method:
// points outside of the circle are left out.
func tally(first, end int) (t tallies) {
	random := npb.NewRandom(seed)
	random.Skip(uint64(2 * first * batchPairs))
	for range (end - first) * batchPairs {
		x := 2*random.Float64() - 1
		y := 2*random.Float64() - 1
		square := x*x + y*y
		if square > 1 {
			continue
		}
		factor := math.Sqrt(-2 * math.Log(square) / square)
		x, y = math.Abs(x*factor), math.Abs(y*factor)
		t.counts[int(max(x, y))]++
		t.x += x
		t.y += y
	}
	return t
}
