package schedule

import (
	"sync"
	"testing"
)

// A choice is made once for each size, also if masks of a group ask for it again.
func TestAuto_ChoosesOnceForASize(t *testing.T) {
	calls := map[int]int{}
	choose := remember(func(size int) Algorithm {
		calls[size]++
		return Tree(size)
	})
	for range 3 {
		for size := 2; size < 5; size++ {
			if a := choose(size); a.String() != Tree(size).String() {
				t.Errorf("size %d: %v", size, a)
			}
		}
	}
	for size := 2; size < 5; size++ {
		if calls[size] != 1 {
			t.Errorf("size %d was chosen for %d times", size, calls[size])
		}
	}
}

// Several goroutines may ask at once.
func TestAuto_OfSeveralGoroutines(t *testing.T) {
	a, want := Auto(), Choices(9)[0].Algorithm.String()
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for size := 2; size < 20; size++ {
				a.For(size)
			}
			if got := a.For(9).String(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
	asking.Wait()
}

// The root of a flat algorithm does not look at all awaits again for each message that comes: it
// goes on where it stopped.
func TestWalk_LooksAtEachAwaitOnce(t *testing.T) {
	const size = 1000
	w := newWalk(Concurrent(), size, []LogP{DefaultLogP})
	root := &w.ranks[0]
	root.entered = true
	for from := 1; from < size; from++ {
		root.here[root.steps[0].Await[from-1]] = true
		w.progress(0, 0)
		if from < size-1 && (root.met != from || root.at != 0) {
			t.Fatalf("after %d messages it has met %d, in step %d", from, root.met, root.at)
		}
	}
	if root.at != len(root.steps) || root.met != 0 {
		t.Errorf("at the end it is in step %d of %d, with %d met", root.at, len(root.steps), root.met)
	}
}

// Of up to maxWalk ranks the costs are those of walks, of more they are estimates; the frames are
// counted, not estimated.
func TestChoices_WhatIsExact(t *testing.T) {
	for _, size := range []int{2, 3, maxWalk - 1, maxWalk, maxWalk + 1, 100, 128, 250} {
		for _, c := range Choices(size, DefaultLogP) {
			if want := c.Algorithm.Frames(size); c.Frames != want {
				t.Errorf("%v of %d: %d frames, want %d", c.Algorithm, size, c.Frames, want)
			}
			if want := c.Algorithm.Cost(size, DefaultLogP); size <= maxWalk && c.Cost != want {
				t.Errorf("%v of %d: %v, want %v", c.Algorithm, size, c.Cost, want)
			}
		}
	}
}
