package timewheel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

type naiveEvent struct {
	at monotime.Time
	id int
}

// A wheel returns what a stable sort by time returns, whatever the distances, and however pushes
// and pops alternate. Package sim has the same for its queue of functions.
func TestWheel_AgreesWithNaive(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var w Wheel[int]
		var naive []naiveEvent
		now := monotime.Time{}
		for id := range 5000 {
			if len(naive) > 0 && rng.IntN(2) == 0 {
				slices.SortStableFunc(naive, func(a, b naiveEvent) int { return a.at.Compare(b.at) })
				want := naive[0]
				naive = naive[1:]
				if next := w.Next(); next != want.at {
					t.Fatalf("seed %d: next %v, want %v", seed, next, want.at)
				}
				at, got := w.Pop()
				if at != want.at || got != want.id {
					t.Fatalf("seed %d: event %d at %v, want %d at %v", seed, got, at, want.id, want.at)
				}
				now = at
			} else {
				e := naiveEvent{now.Add(time.Duration(rng.Int64N(1 << rng.IntN(40)))), id}
				naive = append(naive, e)
				w.Push(e.at, id)
			}
			if w.Len() != len(naive) {
				t.Fatalf("seed %d: %d events, want %d", seed, w.Len(), len(naive))
			}
		}
	}
}

func TestWheel_NoAllocation(t *testing.T) {
	var w Wheel[int]
	now := monotime.Time{}
	round := func() {
		for i := range 100 {
			w.Push(now.Add(time.Duration(i*i)*time.Microsecond), i)
		}
		for range 100 {
			now, _ = w.Pop()
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
