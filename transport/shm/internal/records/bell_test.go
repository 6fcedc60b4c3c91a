package records

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A bit is there once it was set, until it is taken.
func TestBell_Bits(t *testing.T) {
	b := NewBell(memory(BellBytes))
	var s Set
	if b.Rung(Rings) || b.Take(Rings, &s) {
		t.Error("a new bell was rung")
	}
	for _, i := range []int{0, 63, 64, Rings - 1} {
		b.Ring(i)
		b.Ring(i)
		if !b.Rung(i+1) || i%64 == 0 && b.Rung(i) {
			t.Errorf("bit %d is not found, or elsewhere", i)
		}
		if !b.Take(i+1, &s) || s.Next(0) != i || b.Rung(Rings) {
			t.Errorf("ring %d: the set has %d", i, s.Next(0))
		}
		s.Remove(i)
		if !s.Empty() {
			t.Errorf("ring %d stays", i)
		}
	}
}

// Writers see each sleep as one of its own, whatever one of them has written there.
func TestBell_Sleep(t *testing.T) {
	m := memory(BellBytes)
	reader, writer := NewBell(m), NewBell(m)
	seen := map[uint64]bool{}
	for i, scribble := range []uint64{0, 1, 2, 77, ^uint64(0), 0} {
		if n := writer.Asleep(); n != 0 {
			t.Errorf("sleep %d: asleep before", i)
		}
		reader.Awake()
		reader.Sleep()
		n := writer.Asleep()
		if n == 0 || seen[n] || n != writer.Asleep() {
			t.Errorf("sleep %d: %d, and others %v", i, n, seen)
		}
		seen[n] = true
		writer.state.Store(scribble)
		reader.Sleep()
		if n := writer.Asleep(); n == 0 || seen[n] {
			t.Errorf("sleep %d, after another one wrote %d: %d", i, scribble, n)
		}
		seen[writer.Asleep()] = true
		reader.Awake()
	}
	writer.Ring(Rings - 1)
	if writer.Asleep() != 0 {
		t.Error("a bit tells of a sleep")
	}
}

func TestSet_AgreesWithNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var s Set
	var naive [Rings]bool
	for range 5000 {
		i := rng.IntN(Rings)
		if rng.IntN(3) == 0 {
			s.Add(i)
			naive[i] = true
		} else {
			s.Remove(i)
			naive[i] = false
		}
		from, want := rng.IntN(Rings+1), -1
		for k := Rings - 1; k >= from; k-- {
			if naive[k] {
				want = k
			}
		}
		if got := s.Next(from); got != want {
			t.Fatalf("Next(%d) = %d, want %d", from, got, want)
		}
	}
}

// Several writers and a reader that sleeps whenever it finds nothing: no wake-up is lost.
func TestBell_NoWakeUpIsLost(t *testing.T) {
	const writers, each = 3, 3000
	b := NewBell(memory(BellBytes))
	wake := make(chan struct{}, 1)
	var counts [writers]struct {
		sync.Mutex
		n int
	}
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			woken := uint64(0)
			for range each {
				counts[i].Lock()
				counts[i].n++
				counts[i].Unlock()
				b.Ring(i * 70)
				if n := b.Asleep(); n != 0 && n != woken {
					woken = n
					select {
					case wake <- struct{}{}:
					default: // it has been woken
					}
				}
			}
		})
	}
	var set Set
	timeout := time.After(20 * time.Second)
	for seen := 0; seen < writers*each; {
		if b.Take(Rings, &set) {
			for i := set.Next(0); i >= 0; i = set.Next(i) {
				set.Remove(i)
				counts[i/70].Lock()
				seen += counts[i/70].n
				counts[i/70].n = 0
				counts[i/70].Unlock()
			}
			continue
		}
		if b.Sleep(); b.Rung(Rings) {
			b.Awake()
			continue
		}
		select {
		case <-wake:
		case <-timeout:
			t.Fatalf("asleep after %d of %d", seen, writers*each)
		}
	}
	running.Wait()
}

// That frames are altered is told for good, and apart from bits and sleeps.
func TestBell_Altered(t *testing.T) {
	m := memory(BellBytes)
	reader, writer := NewBell(m), NewBell(m)
	for i := range Rings {
		writer.Ring(i)
	}
	reader.Sleep()
	if reader.Altered() {
		t.Error("nobody has said that frames are altered")
	}
	var s Set
	if !reader.Take(Rings, &s) {
		t.Error("no bit was set")
	}
	writer.Alter()
	if !reader.Altered() || writer.Asleep() == 0 || reader.Rung(Rings) {
		t.Errorf("altered %v, sleep %d, rung %v; want true, one, false", reader.Altered(), writer.Asleep(), reader.Rung(Rings))
	}
}
