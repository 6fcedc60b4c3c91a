package xsk

import (
	"os"
	"testing"
)

// The frames of an MTU of 1,500 take the smallest chunk, and none is longer than a page. Where the
// NIC writes them there is room for them, and for their check sequence, in whole kilobytes.
func TestChunkFor(t *testing.T) {
	page := os.Getpagesize()
	for _, c := range []struct {
		frame    int
		zeroCopy bool
		chunk    int
		ok       bool
	}{
		{60, false, 2048, true}, {1518, false, 2048, true}, {2048 - 256, false, 2048, true},
		{2048 - 256 + 1, false, 4096, true}, {MaxFrame(false), false, page, true},
		{MaxFrame(false) + 1, false, 2 * page, false},
		{60, true, 2048, true}, {1024 - 4, true, 2048, true}, {1024 - 3, true, 4096, true}, {1518, true, 4096, true},
		{MaxFrame(true), true, page, true}, {MaxFrame(true) + 1, true, 2 * page, false},
	} {
		if chunk, ok := ChunkFor(c.frame, c.zeroCopy); chunk != c.chunk || ok != c.ok {
			t.Errorf("%d bytes, zero-copy %t: %d, %t; want %d, %t", c.frame, c.zeroCopy, chunk, ok, c.chunk, c.ok)
		}
	}
	if whole := (4096 - 256) / 1024 * 1024; page == 4096 && MaxFrame(true) != whole-4 {
		t.Errorf("the longest frame that a NIC writes is %d bytes, want %d", MaxFrame(true), whole-4)
	}
}

// Where the next frame is expected is memory of the socket, or nothing, whatever is in the ring.
func TestExpected_IsMemory(t *testing.T) {
	const size = 2 * minChunk
	for addr, want := range map[uint64]int{
		0: 128, minChunk: 128, size - headroom - 128: 128, size - headroom: 0, size: 0, 1 << 62: 0,
		^uint64(0) - headroom: 0, // behind its headroom are the last addresses that there are
	} {
		s := Socket{memory: make([]byte, size)}
		s.Fill, _ = ends(2, 0)
		s.Fill.entries[0] = addr
		if b := s.Expected(); len(b) != want {
			t.Errorf("address %#x: %d bytes, want %d", addr, len(b), want)
		}
	}
}
