package schedule

import (
	"sync"
	"testing"
	"time"
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

// The model takes about as many steps as there are messages: the root of a flat algorithm does not
// look at all awaits again for each message that comes.
func TestChoices_OfThousandsOfRanks(t *testing.T) {
	took := func(size int) (least time.Duration) {
		least = time.Hour
		for range 3 {
			begun := time.Now()
			Concurrent().Cost(size)
			least = min(least, time.Since(begun))
		}
		return least
	}
	small, large := took(2000), took(16000)
	if large > 32*small { // eight times as many; a square would be 64 times
		t.Errorf("2,000 ranks take %v, and 16,000 %v", small, large)
	}
}
