package records

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/rawlane/rawlane/transport"
)

// A reader holds half of the ring, and of its last frame what is beyond that.
func TestReader_HoldsHalf(t *testing.T) {
	for size, frames := range map[int]int{100: 512, 1000: 64, 1001: 64, 90: 547} { // of 128, 1024, 1032, and 120 bytes
		w, r := newPair(MinData)
		for w.Put(frame(make([]byte, size)), src) == Done {
		}
		w.Commit()
		var f transport.Frame
		taken := 0
		for r.Next(&f) == Done {
			taken++
		}
		if !r.Full() || taken != frames {
			t.Errorf("it holds %d frames of %d bytes, want %d; full: %v", taken, size, frames, r.Full())
		}
		r.Release()
		if r.Full() || r.Next(&f) != Done {
			t.Error("it has given all back, and finds nothing")
		}
	}
}

// Next tells what no Writer writes from what one does.
func TestReader_Broken(t *testing.T) {
	const good = 8 | kindFrame<<kindShift
	for name, c := range map[string]struct {
		word uint64
		want Result
	}{
		"a frame":                  {good, Done},
		"nothing":                  {0, None},
		"a kind that is not":       {8 | 3<<kindShift, Broken},
		"a length that is not":     {1 << 31, Broken},
		"longer than a frame is":   {MinData/framePart - headerLen - wordLen + 8 | kindFrame<<kindShift, Broken},
		"as long as a frame is":    {MinData/framePart - headerLen - wordLen | kindFrame<<kindShift, Done},
		"longer than an int":       {0xffffffff | kindFrame<<kindShift, Broken},
		"bits that are not used":   {good | 1<<49, Broken},
		"a tag, and no sign of it": {good | 5<<tciShift, Broken},
		"a tag":                    {good | 5<<tciShift | tagged, Done},
		"VID 4095":                 {good | 0xfff<<tciShift | tagged, Broken},
		"a skip of nothing":        {kindSkip << kindShift, Broken},
		"a skip":                   {8 | kindSkip<<kindShift, None},
		"a skip to the beginning":  {MinData | kindSkip<<kindShift, Broken}, // of itself, for ever
		"a skip of 12 bytes":       {12 | kindSkip<<kindShift, Broken},
		"a skip beyond the end":    {MinData + 8 | kindSkip<<kindShift, Broken},
		"a skip with a tag":        {8 | kindSkip<<kindShift | tagged, Broken},
	} {
		_, r := newPair(MinData)
		binary.NativeEndian.PutUint64(r.data, c.word)
		var f transport.Frame
		if got := r.Next(&f); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A skip leads to where it says. There are no more than three in a row; a frame ends before the end
// of the memory.
func TestReader_Skips(t *testing.T) {
	skip := func(r *Reader, at, n int) { binary.NativeEndian.PutUint64(r.data[at:], uint64(n)|kindSkip<<kindShift) }
	var f transport.Frame
	_, r := newPair(MinData)
	r.next, r.back = 512, 512
	skip(r, 512, MinData-512)
	if got := r.Next(&f); got != None || r.next != MinData || r.back != MinData || r.head.Load() != MinData {
		t.Errorf("%v, and the next record is at %d; want None at %d, and all given back", got, r.next, MinData)
	}
	for skips, want := range []Result{Done, Done, Done, Done, Broken} {
		_, r := newPair(MinData)
		for i := range skips {
			skip(r, 8*i, 8)
		}
		binary.NativeEndian.PutUint64(r.data[8*skips:], 8|kindFrame<<kindShift)
		if got := r.Next(&f); got != want {
			t.Errorf("%d skips: %v, want %v", skips, got, want)
		}
	}
	_, r = newPair(MinData) // what is skipped while frames are held is not given back
	binary.NativeEndian.PutUint64(r.data, 8|kindFrame<<kindShift)
	r.Next(&f)
	skip(r, headerLen+8, 64)
	if r.Next(&f); r.back != 0 || r.head.Load() != 0 || r.next != headerLen+8+64 {
		t.Errorf("given back up to %d, next is %d", r.head.Load(), r.next)
	}
	for _, c := range []struct {
		at   int
		want Result
	}{{MinData - headerLen - 2*wordLen, Done}, {MinData - headerLen - wordLen, Broken}} {
		r.next, r.back = uint64(c.at), uint64(c.at)
		binary.NativeEndian.PutUint64(r.data[c.at:], 8|kindFrame<<kindShift)
		if got := r.Next(&f); got != c.want {
			t.Errorf("a record of 32 bytes at %d of %d: %v, want %v", c.at, MinData, got, c.want)
		}
	}
}

// Whatever is in the memory, a reader ends, and its frames lie in the ring.
func FuzzReader(f *testing.F) {
	f.Add([]byte{8, 0, 0, 0, 0, 0, 0, 1}, uint16(0))
	f.Add([]byte{8, 0, 0, 0, 0, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 1}, uint16(512))
	f.Add(bytes.Repeat([]byte{8, 0, 0, 0, 0, 0, 0, 1}, 5), uint16(65500))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		_, r := newPair(MinData)
		copy(r.data[at&^7:], b)
		r.next, r.back = uint64(at&^7), uint64(at&^7)
		var got transport.Frame
		for n := 0; ; n++ {
			if n > 2*MinData/headerLen {
				t.Fatal("no end")
			}
			result := r.Next(&got)
			if result == None && r.Full() {
				r.Release()
				continue
			}
			if result != Done {
				return
			}
			if len(got.Payload) == 0 {
				continue
			}
			from := uintptr(unsafe.Pointer(&got.Payload[0])) - uintptr(unsafe.Pointer(&r.data[0]))
			if from >= MinData || from+uintptr(cap(got.Payload)) > MinData {
				t.Fatalf("a payload at %d to %d", from, from+uintptr(cap(got.Payload)))
			}
		}
	})
}
