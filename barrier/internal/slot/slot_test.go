package slot_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/rawlane/rawlane/barrier/internal/slot"
)

// The layout is that of struct slot, struct member and struct key in offload.bpf.c.
func TestLayout(t *testing.T) {
	for what, sizes := range map[string][2]uintptr{
		"slot": {unsafe.Sizeof(slot.Slot{}), 344}, "member": {unsafe.Sizeof(slot.Member{}), 20},
		"key": {unsafe.Sizeof(slot.Key{}), 16},
	} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s: %d bytes, want %d", what, sizes[0], sizes[1])
		}
	}
}

func open(ranks int, generation uint32) *slot.Slot {
	s := new(slot.Slot)
	s.Configure(&slot.Config{Ranks: ranks})
	s.Open(generation)
	return s
}

// One after the other, the slot says what a list of who has arrived says.
func TestSlot_AgreesWithAList(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		ranks := 1 + rng.IntN(70)
		s, generation, here, waits := open(ranks, 1), uint32(1), map[int]bool{}, false
		for range 20 * ranks {
			rank, of := rng.IntN(ranks), generation-1+uint32(rng.IntN(3))
			want := slot.Stale
			switch {
			case of != generation:
			case here[rank]:
				want = slot.Double
			case len(here) == ranks-1 && waits:
				want = slot.Left
			case len(here) == ranks-1:
				want = slot.Last
			default:
				want = slot.Counted
			}
			if got := s.Arrive(rank, of); got != want {
				t.Fatalf("seed %#x: rank %d of %d, generation %d in %d: %v, want %v", seed, rank, ranks, of, generation, got, want)
			}
			phase := slot.Filling
			switch want {
			case slot.Counted:
				here[rank] = true
			case slot.Last:
				phase = slot.Theirs
			case slot.Left:
				phase = slot.Ours
			}
			if g, p := s.State(); g != generation || p != phase {
				t.Fatalf("seed %#x: generation %d, phase %d, want %d, %d", seed, g, p, generation, phase)
			}
			if phase != slot.Filling {
				s.Next(generation)
				clear(here)
				generation, waits = generation+1, false
			} else if rng.IntN(ranks) == 0 {
				if waits = !waits; waits {
					s.Await(generation)
				} else if !s.Unawait(generation) {
					t.Fatalf("seed %#x: the Center waits on in a generation of which arrivals are missing", seed)
				}
			}
		}
	}
}

// Members and their late doubles arrive at once, on all processors: each generation is won once,
// after all have arrived, and no arrival is lost.
func TestSlot_IsWonOnce(t *testing.T) {
	const ranks, generations = 40, 2000
	s := open(ranks, 1)
	var entered [ranks]atomic.Uint32 // the generation that a rank is in
	var released, wins atomic.Uint32 // the last generation that was won
	win := func(g uint32) {
		wins.Add(1)
		for rank := range entered {
			if entered[rank].Load() < g {
				t.Errorf("generation %d was won without rank %d", g, rank)
			}
		}
		s.Next(g)
		released.Store(g)
	}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			rng := rand.New(rand.NewPCG(uint64(worker), 1))
			for g := uint32(1); g <= generations; g++ {
				for rank := worker; rank < ranks; rank += 4 {
					entered[rank].Store(g)
					for again := range 2 + rng.IntN(2) {
						of := g
						if again == 1 {
							of = g - 1 // late
						}
						if s.Arrive(rank, of) == slot.Last {
							win(of)
						}
					}
				}
				for released.Load() < g {
					runtime.Gosched()
				}
			}
		}()
	}
	all.Wait()
	if got := wins.Load(); got != generations {
		t.Errorf("%d generations were won, want %d", got, generations)
	}
}

// A slot closes in the generation that it is in, and not between the last arrival and the next one.
func TestSlot_Close(t *testing.T) {
	for _, c := range []struct {
		name   string
		has    func(s *slot.Slot)
		closes bool
	}{
		{"nobody", func(*slot.Slot) {}, true},
		{"one missing", func(s *slot.Slot) { s.Arrive(0, 9) }, true},
		{"one missing, the Center waits", func(s *slot.Slot) { s.Arrive(0, 9); s.Await(9) }, true},
		{"all", func(s *slot.Slot) { s.Arrive(0, 9); s.Arrive(1, 9) }, false},
		{"all, the Center waits", func(s *slot.Slot) { s.Arrive(0, 9); s.Await(9); s.Arrive(1, 9) }, false},
		{"the next one", func(s *slot.Slot) { s.Next(9) }, false},
		{"the one before", func(s *slot.Slot) { s.Open(8) }, false},
		{"closed", func(s *slot.Slot) { s.Close(9) }, true},
	} {
		s := open(2, 9)
		c.has(s)
		_, before := s.State()
		if got := s.Close(9); got != c.closes {
			t.Errorf("%s: closed %v, want %v", c.name, got, c.closes)
		}
		if _, p := s.State(); (p == slot.Closed) != c.closes || !c.closes && p != before {
			t.Errorf("%s: phase %d, and before it was %d", c.name, p, before)
		}
	}
}

// A wait is given up in the generation that it is for, and as long as arrivals are missing.
func TestSlot_Unawait(t *testing.T) {
	for _, c := range []struct {
		name string
		has  func(s *slot.Slot)
		want bool
		last slot.Result // of the rest
	}{
		{"nobody waits", func(*slot.Slot) {}, true, slot.Last},
		{"the Center waits", func(s *slot.Slot) { s.Await(9) }, true, slot.Last},
		{"all, the Center waits", func(s *slot.Slot) { s.Await(9); s.Arrive(0, 9); s.Arrive(1, 9) }, false, slot.Double},
		{"all", func(s *slot.Slot) { s.Arrive(0, 9); s.Arrive(1, 9) }, false, slot.Double},
		{"the next one, the Center waits", func(s *slot.Slot) { s.Next(9); s.Await(10) }, true, slot.Stale},
		{"closed", func(s *slot.Slot) { s.Close(9) }, true, slot.Last},
	} {
		s := open(2, 9)
		c.has(s)
		if got := s.Unawait(9); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
		if _, p := s.State(); p == slot.Closed {
			continue
		}
		s.Arrive(0, 9)
		if got := s.Arrive(1, 9); got != c.last {
			t.Errorf("%s: the last arrival is %v, want %v", c.name, got, c.last)
		}
		if s.Arrive(0, 10); c.last == slot.Stale && s.Arrive(1, 10) != slot.Left {
			t.Errorf("%s: the Center does not wait for generation 10 any more", c.name)
		}
	}
}

// While the Center says that it waits, and closes the slot in the end, a generation is either won by
// the last to arrive, or left to the Center; and none is won after the slot was closed.
func TestSlot_AwaitAndClose(t *testing.T) {
	for round := range 3000 {
		const ranks = 3
		s := open(ranks, 9)
		s.Arrive(0, 9)
		var won atomic.Bool
		var all sync.WaitGroup
		for rank := 1; rank < ranks; rank++ {
			all.Add(1)
			go func() {
				defer all.Done()
				if s.Arrive(rank, 9) == slot.Last {
					won.Store(true)
					s.Next(9)
				}
			}()
		}
		var waits, ended bool
		if round%2 == 0 {
			waits = s.Await(9)
		} else {
			ended = s.Close(9)
		}
		all.Wait()
		g, p := s.State()
		bits := s.Drain(0)
		switch {
		case ended && (p != slot.Closed || won.Load() || bits != 1<<ranks-1):
			t.Fatalf("round %d: closed, won %v, phase %v, arrived %b", round, won.Load(), p, bits)
		case waits && (won.Load() || p != slot.Ours || g != 9):
			t.Fatalf("round %d: the Center waits, and won %v, generation %d, phase %v", round, won.Load(), g, p)
		case !ended && !waits && (!won.Load() || g != 10):
			t.Fatalf("round %d: won %v, generation %d, phase %v", round, won.Load(), g, p)
		}
	}
}
