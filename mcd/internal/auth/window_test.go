package auth

import (
	"math/rand/v2"
	"testing"
)

// Each case is a counter and whether it is new: the whole table is one sender's frames in the order
// of their arrival.
//
// Source: RFC 6479, and the cases at which implementations of it went wrong.
func TestWindow_Cases(t *testing.T) {
	const size = 8128 // as docs/wire-format.md has it
	for _, run := range [][]struct {
		counter uint64
		fresh   bool
	}{
		{ // in order, and out of order
			{1, true}, {1, false}, {2, true}, {2, false}, {9, true}, {8, true}, {7, true}, {7, false}, {8, false},
			{9, false}, {3, true}, {4, true}, {10, true}, {10, false},
		},
		{{0, false}, {1, true}, {0, false}}, // counters begin at 1
		{ // a jump by less than a block, by one, by all
			{1, true}, {blockBits - 1, true}, {blockBits, true}, {blockBits, false}, {blockBits + 1, true},
			{2*blockBits + 1, true}, {2 * blockBits, true}, {blockBits + 2, true}, {2, true}, {1, false},
			{10 * windowBits, true}, {1, false}, {2*blockBits + 2, false},
		},
		{ // the window's lower edge
			{size + 1, true}, {1, false}, {2, true}, {2, false}, {size, true}, {size + 2, true}, {2, false}, {3, true},
		},
		{ // its blocks are cleared as it moves on, also when it moves round
			{1, true}, {windowBits + 1, true}, {windowBits + 1, false}, {windowBits, true}, {windowBits - 1, true},
			{2*windowBits + 1, true}, {windowBits + 1, false}, {2 * windowBits, true},
		},
		{ // a jump as long as the window to the bit
			{blockBits, true}, {windowBits + blockBits, true}, {windowBits + blockBits - size + 1, true},
			{windowBits + blockBits - size, false}, {blockBits, false},
		},
		{ // the highest counters
			{LastCounter, true}, {LastCounter, false}, {LastCounter - 1, true}, {LastCounter + 1, false},
			{^uint64(0), false}, {LastCounter - size + 1, true}, {LastCounter - size, false}, {1, false}, {LastCounter - 2, true},
		},
	} {
		var w window
		for i, c := range run {
			if got := w.accept(c.counter); got != c.fresh {
				t.Errorf("case %d of %v: counter %d: new is %v", i, run, c.counter, got)
			}
		}
	}
}

// What the window says is what a list of all counters says.
func TestWindow_AgreesWithNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var w window
		seen, top := map[uint64]bool{}, uint64(0)
		for range 3000 {
			c := uint64(max(1, int64(top)+rng.Int64N(1<<uint(rng.IntN(15)))-rng.Int64N(1<<uint(rng.IntN(15)))))
			want := !seen[c] && c+8128 > top
			if got := w.accept(c); got != want {
				t.Fatalf("seed %d: counter %d after %d: new is %v", seed, c, top, got)
			}
			if want {
				seen[c] = true
				top = max(top, c)
			}
		}
	}
}
