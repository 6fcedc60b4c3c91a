package records

import (
	"bytes"
	"encoding/binary"
	"maps"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// words returns the words of memory that are not 0, by their offsets.
func words(memory []byte) map[int]uint64 {
	m := map[int]uint64{}
	for at := 0; at < len(memory); at += wordLen {
		if v := binary.NativeEndian.Uint64(memory[at:]); v != 0 {
			m[at] = v
		}
	}
	return m
}

// The two processes may be of different builds: each field lies where the table in the package's
// documentation says.
func TestRing_Layout(t *testing.T) {
	m := memory(Bytes(MinData))
	w, r := NewWriter(m), NewReader(m)
	check := func(after string, want map[int]uint64) {
		t.Helper()
		if got := words(m); !maps.Equal(got, want) {
			t.Errorf("%s: %#x, want %#x", after, got, want)
		}
	}
	check("nothing", map[int]uint64{})
	w.Drop()
	w.Drop()
	check("two frames dropped", map[int]uint64{128: 2})
	w.Want()
	check("the writer waits for room", map[int]uint64{128: 2, 136: 1})
	if r.Release(); w.Closed() {
		t.Error("closed before Close")
	}
	check("the reader has told it", map[int]uint64{128: 2})
	if r.Close(); !w.Closed() {
		t.Error("not closed after Close")
	}
	check("nobody reads any more", map[int]uint64{128: 2, 8: 1})

	f := transport.Frame{Dst: dst, EtherType: 0x88b5, Payload: []byte("123456789"), OptionalTag: transport.Tagged(transport.Tag{VID: 0x123, PCP: 5})}
	if w.Put(&f, src) != Done {
		t.Fatal("no room")
	}
	w.Commit()
	const size, frameKind, tag, tci = 9, 1 << 56, 1 << 48, 0xa123 << 32
	if got := binary.NativeEndian.Uint64(m[256:]); got != size|frameKind|tag|tci {
		t.Errorf("a frame's word is %#x", got)
	}
	var want []byte
	want = append(want, dst[:]...)
	want = binary.NativeEndian.AppendUint16(want, 0x88b5)
	want = append(append(want, src[:]...), 0, 0)
	want = append(want, "123456789"...)
	if got := m[256+8:][:len(want)]; !bytes.Equal(got, want) {
		t.Errorf("a frame lies there as %q, want %q", got, want)
	}
	if r.Next(&f) != Done {
		t.Fatal("no frame")
	}
	r.Release()
	if got := binary.NativeEndian.Uint64(m); got != 24+16 {
		t.Errorf("a frame of 9 bytes was given back: head is %d", got)
	}
}

// A skip's word has its kind, and how far it leads.
func TestRing_LayoutOfASkip(t *testing.T) {
	m := memory(Bytes(MinData))
	w, r := NewWriter(m), NewReader(m)
	var f transport.Frame
	for w.again == 0 {
		put(t, w, 1000)
		r.Next(&f)
		r.Release()
	}
	const at = 3 * (24 + 1000)
	if got := binary.NativeEndian.Uint64(m[256+at:]); got != uint64(MinData-at)|2<<56 {
		t.Errorf("the word at %d is %#x, want a skip of %d bytes", at, got, MinData-at)
	}
}

// A bell's bits come first, and then its state.
func TestBell_Layout(t *testing.T) {
	m := memory(BellBytes)
	b := NewBell(m)
	for i, want := range map[int]map[int]uint64{
		0:         {0: 1},
		63:        {0: 1 << 63},
		64:        {8: 1},
		Rings - 1: {48: 1 << 63},
	} {
		b.Ring(i)
		if got := words(m); !maps.Equal(got, want) {
			t.Errorf("ring %d: %#x, want %#x", i, got, want)
		}
		clear(m)
	}
	b.Sleep()
	asleep := words(m)
	if len(asleep) != 1 || asleep[56]%2 != 1 {
		t.Errorf("asleep: %#x, want an odd number at 56", asleep)
	}
	b.Awake()
	if got := words(m); len(got) != 1 || got[56]%2 != 0 || got[56] <= asleep[56] {
		t.Errorf("awake: %#x, want a greater, even number at 56", got)
	}
}
