package records

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/rawlane/rawlane/transport"
)

var (
	dst = transport.MAC{2, 0, 0, 0, 0, 1}
	src = transport.MAC{2, 0, 0, 0, 0, 2}
)

// memory returns zeros, aligned as mapped memory is.
func memory(size int) []byte {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size)
}

// newPair returns both sides of a ring.
func newPair(data int) (*Writer, *Reader) {
	m := memory(Bytes(data))
	return NewWriter(m), NewReader(m)
}

func frame(payload []byte) *transport.Frame {
	return &transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: payload}
}

// A frame arrives as it was sent, once it is committed.
func TestRing_AFrame(t *testing.T) {
	w, r := newPair(MinData)
	sent := []transport.Frame{
		{Dst: dst, EtherType: 0x88b5, Payload: []byte("one")},
		{Dst: transport.Broadcast, Src: dst, EtherType: 0xffff, OptionalTag: transport.Tagged(transport.Tag{}), Payload: []byte{}},
		{Dst: dst, EtherType: 0, OptionalTag: transport.Tagged(transport.Tag{VID: 4094, PCP: 7, DEI: true}), Payload: bytes.Repeat([]byte{0xa5}, 1001)},
	}
	var got transport.Frame
	for i := range sent {
		if got := w.Put(&sent[i], src); got != Done {
			t.Fatalf("Put: %v", got)
		}
		if r.Next(&got) != None || r.Waiting() {
			t.Error("a frame is seen before Commit")
		}
	}
	if hidden := w.Hidden(); hidden != recordLen(3)+recordLen(0)+recordLen(1001) {
		t.Errorf("%d bytes are hidden", hidden)
	}
	w.Commit()
	if w.Hidden() != 0 || !r.Waiting() {
		t.Error("Commit shows nothing")
	}
	for i := range sent {
		if result := r.Next(&got); result != Done {
			t.Fatalf("frame %d: %v", i, result)
		}
		want := sent[i]
		if want.Src.IsZero() {
			want.Src = src
		}
		if got.Dst != want.Dst || got.Src != want.Src || got.EtherType != want.EtherType ||
			got.OptionalTag != want.OptionalTag || !bytes.Equal(got.Payload, want.Payload) || cap(got.Payload) != len(want.Payload) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if r.Next(&got) != None {
		t.Error("there is one more")
	}
}

// twin is a ring beside a queue that does the same.
type twin struct {
	t      *testing.T
	w      *Writer
	r      *Reader
	rng    *rand.Rand
	mtu    int
	hidden [][]byte // put, and not committed
	shown  [][]byte
	lent   []transport.Frame // taken, and not released
	copies [][]byte          // of their payloads
}

func (p *twin) put() {
	b := make([]byte, p.rng.IntN(p.mtu+1))
	if p.rng.IntN(2) == 0 {
		b = b[:min(len(b), p.rng.IntN(100))]
	}
	for i := range b {
		b[i] = byte(p.rng.Uint32())
	}
	switch p.w.Put(frame(b), src) {
	case Done:
		p.hidden = append(p.hidden, b)
	case Broken:
		p.t.Fatal("the writer says Broken")
	}
}

func (p *twin) commit() {
	p.w.Commit()
	p.shown = append(p.shown, p.hidden...)
	p.hidden = nil
}

func (p *twin) take() {
	var f transport.Frame
	switch result := p.r.Next(&f); {
	case result == Done && len(p.shown) == 0:
		p.t.Fatalf("a frame of %d bytes comes from nowhere", len(f.Payload))
	case result == Done:
		if !bytes.Equal(f.Payload, p.shown[0]) {
			p.t.Fatalf("got %d bytes, want %d others", len(f.Payload), len(p.shown[0]))
		}
		p.shown = p.shown[1:]
		p.lent = append(p.lent, f)
		p.copies = append(p.copies, bytes.Clone(f.Payload))
	case result == Broken:
		p.t.Fatal("the reader says Broken")
	case len(p.shown) > 0 && !p.r.Full():
		p.t.Fatal("the reader finds nothing")
	}
}

func (p *twin) release() {
	for i := range p.lent {
		if !bytes.Equal(p.lent[i].Payload, p.copies[i]) {
			p.t.Fatalf("frame %d changed while the reader had it", i)
		}
	}
	p.lent, p.copies = nil, nil
	p.r.Release()
}

// Whatever the order of calls and the lengths of frames: frames come once, in order and whole, and
// stay as they are until Release.
func TestRing_AgreesWithAQueue(t *testing.T) {
	seeds, ops := uint64(60), 3000
	if testing.Short() {
		seeds, ops = 6, 1000
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		mtu := 1 + rng.IntN(6000)
		w, r := newPair(DataFor(mtu))
		p := &twin{t: t, w: w, r: r, rng: rng, mtu: mtu}
		calls := []func(){p.put, p.commit, p.take, p.release}
		weights := []int{1 + rng.IntN(6), 1 + rng.IntN(3), 1 + rng.IntN(6), 1 + rng.IntN(3)}
		var bag []int
		for i, n := range weights {
			bag = append(bag, slices.Repeat([]int{i}, n)...)
		}
		for range ops {
			calls[bag[rng.IntN(len(bag))]]()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// A reader that has taken all there is, given nothing of it back and fallen asleep leaves room for
// the longest frame, which is to wake it: wherever in the ring that is.
func TestRing_RoomForTheFrameThatWakes(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 2))
		mtu := 1 + rng.IntN(12000)
		w, r := newPair(DataFor(mtu))
		var f transport.Frame
		for range 50 {
			for n := 1 + rng.IntN(40); n > 0 && w.Put(frame(make([]byte, rng.IntN(mtu+1))), src) == Done; n-- {
			}
			w.Commit()
			r.Release()
			for r.Next(&f) == Done {
			}
			if r.Full() { // Wait would return at once
				continue
			}
			if w.Put(frame(make([]byte, mtu)), src) != Done {
				t.Fatalf("seed %d: no room for a frame of %d bytes in %d", seed, mtu, len(w.data))
			}
		}
	}
}

// A reader holds half of the ring at most, and one frame.
func TestReader_HoldsHalf(t *testing.T) {
	w, r := newPair(MinData)
	for w.Put(frame(make([]byte, 100)), src) == Done {
	}
	w.Commit()
	var f transport.Frame
	taken := 0
	for r.Next(&f) == Done {
		taken += recordLen(100)
	}
	if !r.Full() || taken < MinData/lendPart || taken > MinData/lendPart+recordLen(100) {
		t.Errorf("it holds %d bytes of %d", taken, MinData)
	}
	r.Release()
	if r.Full() || r.Next(&f) != Done {
		t.Error("it has given all back, and finds nothing")
	}
}

func put(t *testing.T, w *Writer, size int) {
	t.Helper()
	if w.Put(frame(make([]byte, size)), src) != Done {
		t.Fatal("no room")
	}
	w.Commit()
}

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

// What was dropped is counted.
func TestRing_Dropped(t *testing.T) {
	w, r := newPair(MinData)
	for i := range uint64(3) {
		if n := r.Dropped(); n != i {
			t.Errorf("%d dropped, want %d", n, i)
		}
		w.Drop()
	}
}

// A ring whose reader keeps up takes one page of memory, and starts again when that is used up, not
// with each frame.
func TestRing_KeepsToItsFirstPage(t *testing.T) {
	m := memory(Bytes(DataFor(9000)))
	w, r := NewWriter(m), NewReader(m)
	var f transport.Frame
	for range 10000 {
		if w.Put(frame([]byte("sixty-four bytes, as most messages between nodes have, or fewer")), src) != Done {
			t.Fatal("no room")
		}
		w.Commit()
		if r.Next(&f) != Done {
			t.Fatal("nothing there")
		}
		r.Release()
	}
	if laps := int(w.next) / DataFor(9000); laps > 10000*recordLen(63)/restartAfter || laps < 200 {
		t.Errorf("the ring has started again %d times", laps)
	}
	if i := bytes.IndexFunc(m[4096:], func(r rune) bool { return r != 0 }); i >= 0 {
		t.Errorf("byte %d was written", 4096+i)
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

// A writer that waits for room is told once there is much of it, or all.
func TestRing_WriterIsToldOfRoom(t *testing.T) {
	w, r := newPair(MinData)
	for w.Put(frame(make([]byte, 1000)), src) == Done {
	}
	w.Commit()
	var f transport.Frame
	r.Next(&f)
	if r.Release() {
		t.Error("nobody waits, and is told")
	}
	w.Want()
	taken := 0
	for told := false; !told; told = r.Release() {
		if r.Next(&f) != Done {
			t.Fatalf("not told after %d bytes", taken)
		}
		taken += recordLen(1000)
	}
	if taken += recordLen(1000); taken != MinData/wakePart { // with the first frame
		t.Errorf("told after %d bytes of %d", taken, MinData)
	}
	if w.Put(frame(make([]byte, 1000)), src) != Done {
		t.Error("there is no room")
	}
	for r.Next(&f) == Done {
		r.Release()
	}
	w.Want()
	if !r.Release() || r.Release() {
		t.Error("the ring is empty: the writer is to be told, once")
	}
}

func TestRing_Sizes(t *testing.T) {
	for _, mtu := range []int{1, 64, 1500, MinData/framePart - headerLen - wordLen, 9000, 65535} {
		data := DataFor(mtu)
		if !Valid(data, mtu) || data > MinData && Valid(data/2, mtu) {
			t.Errorf("MTU %d: %d bytes", mtu, data)
		}
	}
	if n := DataFor(9000); n != 512<<10 {
		t.Errorf("9,000 bytes: a ring of %d (doc.go says 512 KiB)", n)
	}
	for _, c := range [][2]int{{0, 64}, {MinData / 2, 64}, {MinData + 8, 64}, {3 << 29, 64}, {MinData, 0}, {MinData, -1}, {MinData, MinData}, {MinData, 1 << 30}} {
		if Valid(c[0], c[1]) {
			t.Errorf("%d bytes for an MTU of %d are valid", c[0], c[1])
		}
	}
}

// Promise: no allocation.
func TestRing_DoesNotAllocate(t *testing.T) {
	w, r := newPair(MinData)
	f, got := frame(make([]byte, 64)), new(transport.Frame)
	if n := testing.AllocsPerRun(100, func() { w.Put(f, src); w.Commit(); r.Next(got); r.Release() }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
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
