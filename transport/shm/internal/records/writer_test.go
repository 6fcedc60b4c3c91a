package records

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// A ring that starts again has room for as much as before, but for the skip: also before the reader
// has seen that.
func TestWriter_RoomAfterStartingAgain(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		w, r := newPair(MinData)
		var f transport.Frame
		for w.again == 0 { // until it starts again, with a frame
			put(t, w, rng.IntN(2000))
			if w.again == 0 && r.Next(&f) != Done {
				t.Fatal("no frame")
			}
			r.Release()
		}
		sent, room := 1, 0
		for {
			size := rng.IntN(2000)
			if w.Put(frame(bytes.Repeat([]byte{byte(sent)}, size)), src) != Done {
				break
			}
			room += recordLen(size)
			sent++
		}
		w.Commit()
		if room < MinData-3*recordLen(2000)-2*wordLen {
			t.Errorf("seed %d: room for %d bytes of %d", seed, room, MinData)
		}
		for i := 0; i < sent; r.Release() {
			switch r.Next(&f) {
			case Broken:
				t.Fatalf("seed %d: broken after %d of %d frames", seed, i, sent)
			case None:
				if !r.Full() {
					t.Fatalf("seed %d: nothing after %d of %d frames", seed, i, sent)
				}
			case Done:
				if i > 0 && !bytes.Equal(f.Payload, bytes.Repeat([]byte{byte(i)}, len(f.Payload))) {
					t.Fatalf("seed %d: frame %d of %d is another one", seed, i, sent)
				}
				i++
			}
		}
		put(t, w, 2000) // and it goes on
		if r.Next(&f) != Done || len(f.Payload) != 2000 {
			t.Fatalf("seed %d: no frame after that", seed)
		}
	}
}

// An empty ring starts again where the frame fits before the skip that leads there; else it goes on,
// as it would have to leap over that.
func TestWriter_StartsAgainWhereTheFrameFits(t *testing.T) {
	const at = 3 * (headerLen + 1000)
	for more, again := range []bool{true, false} {
		w, r := newPair(MinData)
		var f transport.Frame
		for range 3 {
			put(t, w, 1000)
			r.Next(&f)
		}
		r.Release()
		size := at - headerLen - wordLen + more*8
		put(t, w, size)
		first := uint64(at)
		if again {
			first = MinData
		}
		if began := w.next - uint64(recordLen(size)); began != first {
			t.Errorf("a frame of %d bytes is at %d, want %d", size, began, first)
		}
		if r.Next(&f); len(f.Payload) != size {
			t.Errorf("got %d bytes, want %d", len(f.Payload), size)
		}
	}
}

// A writer that has started again leaves the skip that leads there as it is, until the reader has
// found it: also where a record, or the word behind it, would end there.
func TestWriter_LeavesItsSkip(t *testing.T) {
	for last := 1000 - 2*wordLen; last <= 1000+2*wordLen; last += wordLen {
		w, r := newPair(MinData)
		var f transport.Frame
		for w.again == 0 { // the skip is behind three records
			put(t, w, 1000)
			if w.again == 0 {
				r.Next(&f)
				r.Release()
			}
		}
		put(t, w, 1000)
		put(t, w, last)
		if before := w.next == w.again+uint64(2*recordLen(1000)+recordLen(last)); before != (last < 1000) {
			t.Errorf("a third frame of %d bytes is before the skip: %v", last, before)
		}
		for _, want := range []int{1000, 1000, last} {
			if result := r.Next(&f); result != Done || len(f.Payload) != want {
				t.Errorf("with one of %d bytes: got %v and %d bytes, want %d", last, result, len(f.Payload), want)
			}
		}
	}
}

// A writer fills the memory up to what the reader holds, less the word behind the last record.
func TestWriter_FillsToTheHead(t *testing.T) {
	w, r := newPair(MinData)
	var f transport.Frame
	for range 4 {
		put(t, w, 1000)
	}
	for range 2 {
		r.Next(&f)
	}
	r.Release()
	sent := 4
	for w.next <= MinData { // until one lies at the beginning again
		put(t, w, 1000)
		sent++
	}
	if result := w.Put(frame(make([]byte, 1000)), src); result != None {
		t.Errorf("up to the head, and no word behind: %v, want None", result)
	}
	put(t, w, 1000-wordLen)
	for range sent - 2 + 1 {
		for r.Full() {
			r.Release()
		}
		if result := r.Next(&f); result != Done {
			t.Fatalf("%v, and %d frames were sent", result, sent+1)
		}
	}
}

// The last record ends with the memory, less the word behind it; one that is longer comes first.
func TestWriter_TheEndOfTheMemory(t *testing.T) {
	for more, first := range []bool{false, true} {
		w, r := newPair(MinData)
		var f transport.Frame
		for w.next+2*uint64(recordLen(1000)) < MinData {
			put(t, w, 1000)
			if w.next > MinData/4 { // the ring is never empty: else it starts again
				r.Next(&f)
				r.Release()
			}
		}
		put(t, w, int(MinData-w.next)-headerLen-wordLen+8*more)
		if got := w.next > MinData; got != first {
			t.Errorf("%d bytes too long: the next record is at %d of %d", 8*more, w.next, MinData)
		}
	}
}

// A writer reads the reader's line of memory once in 3 KiB, however soon the reader gives frames
// back: each look costs both processors a miss of their caches.
func TestWriter_LooksSeldom(t *testing.T) {
	w, r := newPair(MinData)
	var f transport.Frame
	put(t, w, 100) // the ring is never empty: else the writer starts again
	looks, seen := 0, w.seen
	for range 1000 {
		put(t, w, 100)
		if w.seen != seen {
			looks, seen = looks+1, w.seen
		}
		if r.Next(&f) != Done {
			t.Fatal("no frame")
		}
		r.Release()
	}
	if most := 1000 * recordLen(100) / restartAfter; looks == 0 || looks > most {
		t.Errorf("it has looked %d times, want %d at most", looks, most)
	}
}

// A reader that gives back what it never had is found out, and not where there is room anyway.
func TestWriter_Broken(t *testing.T) {
	for name, head := range map[string]uint64{"ahead": 1 << 40, "one ahead": 8, "far behind": ^uint64(0)} {
		w, _ := newPair(MinData)
		w.head.Store(head)
		var result Result
		for range MinData {
			if result = w.Put(frame(make([]byte, 100)), src); result != Done {
				break
			}
			w.Commit()
		}
		if name == "one ahead" { // a writer that is beyond it by then
			continue
		}
		if result != Broken {
			t.Errorf("head %s: %v, want Broken", name, result)
		}
	}
	w, r := newPair(MinData)
	var f transport.Frame
	for range 40 {
		w.Put(frame(make([]byte, 1000)), src)
		w.Commit()
		r.Next(&f)
	}
	r.Release()
	for w.Put(frame(make([]byte, 1000)), src) == Done { // it has seen head
		w.Commit()
	}
	r.head.Store(0)
	if got := w.Put(frame(make([]byte, 1000)), src); got != Broken {
		t.Errorf("head went back: %v, want Broken", got)
	}
	w, _ = newPair(MinData)
	w.head.Store(MinData) // there would be room for more than a lap
	for result := Done; result != Broken; {
		if w.next >= 2*restartAfter {
			t.Fatalf("head ahead: it was not found out when %d bytes were written", w.next)
		}
		result = w.Put(frame(make([]byte, 100)), src)
	}
}

// Whatever a reader says that it has given back, a writer does not write where it may still read.
func FuzzWriter(f *testing.F) {
	f.Add(uint64(0), uint64(1), uint16(100))
	f.Add(uint64(1<<63), uint64(65536), uint16(8000))
	f.Fuzz(func(t *testing.T, head, step uint64, size uint16) {
		w, _ := newPair(MinData)
		payload := make([]byte, min(int(size), MinData/framePart-headerLen-wordLen))
		for range 200 {
			w.head.Store(head)
			head += step
			before := w.next
			switch w.Put(frame(payload), src) {
			case Broken:
				return
			case None:
				if w.next != before {
					t.Fatal("refused, and written")
				}
			}
			w.Commit()
			if w.next+wordLen > w.limit() {
				t.Fatalf("wrote to %d, where there is room to %d", w.next, w.limit())
			}
		}
	})
}
