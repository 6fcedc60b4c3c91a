package ether

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Segments of a window that come in any order, some of them twice, against a set: what is in
// order, and the run around the one that came last.
func TestReceiver_AgreesWithASet(t *testing.T) {
	const window, size = 20, 32
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := newReceiver(size)
		has := map[uint64]bool{}
		want, latest := uint64(0), uint64(0)
		var inOrder int64
		for range 500 {
			seq := want + rng.Uint64N(window)
			if want > 5 && rng.IntN(4) == 0 {
				seq = want - 1 - rng.Uint64N(5) // again
			}
			isNew := !has[seq]
			has[seq] = true
			gapsBefore := len(has) > int(want)+1 && isNew || !isNew
			for has[want] {
				want++
			}
			if isNew && seq > want {
				latest = seq
			}
			bytes, now := r.onSegment(&frame{seq: seq, payload: 100})
			inOrder += bytes
			if inOrder != int64(want)*100 || r.next != want {
				t.Fatalf("seed %d: %d bytes in order up to %d, want %d up to %d", seed, inOrder, r.next, want*100, want)
			}
			if gapsBefore && !now {
				t.Fatalf("seed %d: segment %d of %d with gaps, but no ack", seed, seq, want)
			}
			var f frame
			r.fillAck(&f)
			lo, hi := uint64(0), uint64(0)
			if latest > want {
				for lo = latest; has[lo-1]; lo-- {
				}
				for hi = latest; has[hi]; hi++ {
				}
			}
			if f.seq != want || f.lo != lo || f.hi != hi && latest > want {
				t.Fatalf("seed %d: ack %d [%d %d), want %d [%d %d)", seed, f.seq, f.lo, f.hi, want, lo, hi)
			}
		}
	}
}

// In order, every second segment is acknowledged at once, and one that asks for it.
func TestReceiver_AcknowledgesEverySecond(t *testing.T) {
	r := newReceiver(16)
	var acks []bool
	for seq := range uint64(7) {
		_, now := r.onSegment(&frame{seq: seq, payload: 1, push: seq == 4})
		acks = append(acks, now)
		if now {
			r.fillAck(new(frame))
		}
	}
	if want := []bool{false, true, false, true, true, false, true}; !slices.Equal(acks, want) {
		t.Errorf("%v, want %v", acks, want)
	}
}
