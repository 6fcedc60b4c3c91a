package records

import (
	"bytes"
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

func put(t *testing.T, w *Writer, size int) {
	t.Helper()
	if w.Put(frame(make([]byte, size)), src) != Done {
		t.Fatal("no room")
	}
	w.Commit()
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
	w.Want()
	for taken = 0; taken < MinData/wakePart-recordLen(1000); taken += recordLen(1000) {
		r.Next(&f)
		if r.Release() {
			t.Fatalf("told again after %d bytes more", taken+recordLen(1000))
		}
	}
	if r.Next(&f); !r.Release() {
		t.Errorf("not told again after %d bytes more", taken+recordLen(1000))
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
