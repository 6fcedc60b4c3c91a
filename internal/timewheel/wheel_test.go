package timewheel

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

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
				most := min(int64(1)<<rng.IntN(63), math.MaxInt64-int64(now.Since()))
				e := naiveEvent{now.Add(time.Duration(rng.Int64N(max(most, 1)))), id}
				naive = append(naive, e)
				w.Push(e.at, id)
			}
			if w.Len() != len(naive) {
				t.Fatalf("seed %d: %d events, want %d", seed, w.Len(), len(naive))
			}
			if id%8 == 0 {
				w.check(t, seed)
			}
		}
	}
}

// check finds each event in the slot of its own digit, so that it moves at most once for each level,
// and blocks full but for the last.
func (w *Wheel[T]) check(t *testing.T, seed uint64) {
	t.Helper()
	for level := range w.slot {
		for digit := range w.slot[level] {
			for b := w.slot[level][digit].first; b != nil; b = b.next {
				for _, e := range b.events[b.from:b.to] {
					if is := int(e.at >> (level * digitBits) % slots); is != digit {
						t.Fatalf("seed %d: level %d, slot %d: an event of digit %d", seed, level, digit, is)
					}
					above, own := e.at>>((level+1)*digitBits), w.base>>(level*digitBits)%slots
					if above != w.base>>((level+1)*digitBits) || level > 0 && int(own) == digit {
						t.Fatalf("seed %d: level %d: an event at %d, base %d", seed, level, e.at, w.base)
					}
				}
				if b.next != nil && b.to != blockEvents {
					t.Fatalf("seed %d: a block in the middle has %d events", seed, b.to)
				}
			}
		}
	}
}

// What was popped, or has moved to another level, is not kept alive.
func TestWheel_KeepsNothingAlive(t *testing.T) {
	var w Wheel[*[64]byte]
	var popped []weak.Pointer[[64]byte]
	for k := range 100 {
		w.Push(monotime.At(time.Duration(k*k)), new([64]byte))
	}
	for range 60 {
		_, p := w.Pop()
		popped = append(popped, weak.Make(p))
	}
	runtime.GC()
	for k, p := range popped {
		if p.Value() != nil {
			t.Errorf("event %d is kept", k)
		}
	}
	runtime.KeepAlive(&w)
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
