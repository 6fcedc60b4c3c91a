package schedule

import (
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

// levelled are algorithms whose ranks are in groups, at each of their levels.
func levelled() []Algorithm {
	return []Algorithm{
		Hierarchical(Star(), Star(), 3), Hierarchical(Tree(2), Shuffle(), 3), Hierarchical(Star(), Tree(2), 4),
		Hierarchical(Auto(), Auto(), 3), HierarchicalRepeated(Star(), Tree(2), 3), Chassis(), ChassisRepeated(),
		Hierarchical(Star(), Hierarchical(Star(), Concurrent(), 2), 3),
		Hierarchical(Hierarchical(Shuffle(), TreeTree(2), 2), Hierarchical(Star(), Star(), 2), 4),
		Hierarchical(Chassis(), ChassisRepeated(), 6), Stripe(Hierarchical(Star(), Tree(3), 3), 2), Redundant(Chassis(), 2),
	}
}

// ranksIn returns the ranks whose bits are set.
func ranksIn(mask uint64) (ranks []int) {
	for ; mask != 0; mask &= mask - 1 {
		ranks = append(ranks, bits.TrailingZeros64(mask))
	}
	return ranks
}

// across counts the messages between ranks of two groups, of which each has so many positions.
func across(a Algorithm, ranks []int, group int) (n int) {
	for rank := range ranks {
		for _, s := range a.Steps(rank, len(ranks)) {
			for _, r := range s.Await {
				if ranks[r.From]/group != ranks[rank]/group {
					n++
				}
			}
		}
	}
	return n
}

// Whichever ranks a mask has, the barrier of a hierarchy is one.
func TestSubset_OfAnyRanksIsABarrier(t *testing.T) {
	for _, a := range levelled() {
		const size = 9
		for mask := uint64(1); mask < 1<<size; mask++ {
			if ranks := ranksIn(mask); a.Subset(size, ranks).Check(len(ranks)) != nil {
				t.Fatalf("%v of ranks %v: %v", a, ranks, a.Subset(size, ranks).Check(len(ranks)))
			}
		}
		rng := rand.New(rand.NewPCG(7, 7))
		for range 60 {
			size := 10 + rng.IntN(55)
			ranks := ranksIn(rng.Uint64()&(1<<size-1) | 1<<rng.IntN(size))
			if err := a.Subset(size, ranks).Check(len(ranks)); err != nil {
				t.Fatalf("%v of %d, ranks %v: %v", a, size, ranks, err)
			}
		}
	}
	spread := Shape{Of: []int{0, 1, 2, 0, 1, 1, 0, 2, 2}, Hosts: make([]Host, 3)}
	a := spread.byHost()(Star(), Tree(2))
	for mask := uint64(1); mask < 1<<9; mask++ {
		ranks := ranksIn(mask)
		if err := a.Subset(9, ranks).Check(len(ranks)); err != nil {
			t.Fatal(err)
		}
	}
}

// SCMD §3.5 within §4: under a mask the chassis are what they were. Groups of three exchange no more
// messages than so many groups of a whole would, wherever ranks are missing.
func TestSCMD_3_5_MasksKeepTheChassis(t *testing.T) {
	const size = 12
	for _, c := range []struct {
		a   Algorithm
		per int // messages of each group but the first with another one
	}{
		{Hierarchical(Star(), Star(), 3), 2}, {Hierarchical(Tree(2), TreeTree(2), 3), 2}, {Chassis(), 2},
		{HierarchicalRepeated(Star(), Star(), 3), 2}, {ChassisRepeated(), 3},
	} {
		for mask := uint64(1); mask < 1<<size; mask++ {
			ranks, groups := ranksIn(mask), 0
			for first := 0; first < size; first += 3 {
				if mask>>first&7 != 0 {
					groups++
				}
			}
			want := c.per * (groups - 1)
			if got := across(c.a.Subset(size, ranks), ranks, 3); got != want {
				t.Fatalf("%v of ranks %v: %d messages across, want %d", c.a, ranks, got, want)
			}
		}
	}
}

// Ranks that are not all have a name of their own, by which members of other masks are told so; all
// ranks, and algorithms without groups, have none.
func TestSubset_Names(t *testing.T) {
	hier, without1, without2 := Hierarchical(Star(), Auto(), 3), []int{0, 2, 3}, []int{0, 1, 3}
	if a, b := hier.Subset(4, without1).String(), hier.Subset(4, without2).String(); a == b || !strings.HasPrefix(a, "subset:") {
		t.Errorf("without 1 %s, without 2 %s", a, b)
	}
	if got, want := hier.Subset(4, []int{0, 1, 2, 3}).String(), hier.For(4).String(); got != want {
		t.Errorf("of all: %s, want %s", got, want)
	}
	for _, a := range []Algorithm{Tree(3), Auto(), Heap(2), Stripe(Auto(), 2)} {
		if got, want := a.Subset(4, without1).String(), a.For(3).String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A subset of a subset is that of the whole, also over several networks. What is made for some ranks
// is no schedule for another number of them, and does not panic in Check.
func TestSubset_OfASubset(t *testing.T) {
	whole := Hierarchical(Star(), Star(), 3)
	some := []int{0, 2, 3, 4, 5, 7, 8, 10}
	left := []int{2, 4, 7, 8, 10}
	at := []int{1, 3, 5, 6, 7} // of left in some
	for _, a := range []Algorithm{whole.Subset(12, some).Subset(8, at), Stripe(whole.Subset(12, some), 2).Subset(8, at)} {
		if err := a.Check(5); err != nil {
			t.Error(err)
		}
		if got := across(a, left, 3); got != 6 {
			t.Errorf("%v: %d messages across four chassis, want 6", a, got)
		}
		if a.Check(6) == nil {
			t.Errorf("%v is a schedule for 6 ranks, too", a)
		}
	}
	spread := Shape{Of: []int{0, 1, 0, 1}, Hosts: make([]Host, 2)}
	for _, size := range []int{3, 5} {
		if spread.byHost()(Star(), Star()).Check(size) == nil {
			t.Errorf("groups of four ranks are a schedule for %d", size)
		}
	}
}
