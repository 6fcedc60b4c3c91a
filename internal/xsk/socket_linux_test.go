package xsk

import (
	"os"
	"testing"
)

// The frames of an MTU of 1,500 take the smallest chunk, and none is longer than a page.
func TestChunkFor(t *testing.T) {
	for _, c := range []struct {
		frame, chunk int
		ok           bool
	}{
		{60, 2048, true}, {1518, 2048, true}, {2048 - 256, 2048, true},
		{2048 - 256 + 1, 4096, true}, {MaxFrame(), os.Getpagesize(), true},
		{MaxFrame() + 1, 2 * os.Getpagesize(), false},
	} {
		if chunk, ok := ChunkFor(c.frame); chunk != c.chunk || ok != c.ok {
			t.Errorf("%d bytes: %d, %t; want %d, %t", c.frame, chunk, ok, c.chunk, c.ok)
		}
	}
}
