package afpacket

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rawlane/rawlane/transport"
)

// The payloads of a train are as few pieces to the kernel as they are in memory. Short ones are copied
// into one.
func TestGather(t *testing.T) {
	const long = gatherLen + 1
	beside := func(n, size int) (frames []transport.Frame) {
		for memory := make([]byte, n*size); len(memory) > 0; memory = memory[size:] {
			frames = append(frames, transport.Frame{Payload: memory[:size]})
		}
		return frames
	}
	apart := func(n, size int) (frames []transport.Frame) {
		for memory := make([]byte, n*(size+1)); len(memory) > 0; memory = memory[size+1:] {
			frames = append(frames, transport.Frame{Payload: memory[:size]})
		}
		return frames
	}
	for _, c := range []struct {
		name   string
		frames []transport.Frame
		pieces int
	}{
		{"long ones side by side", beside(44, long), 1},
		{"long ones apart", apart(44, long), 44},
		{"short ones side by side", beside(64, 84), 1},
		{"short ones apart", apart(64, gatherLen), 1},
		{"two blocks", append(beside(16, 1472), beside(10, 1472)...), 2},
		{"a shorter one at the end, elsewhere", append(beside(5, long), apart(1, 20)...), 2},
		{"a shorter one at the end", beside(6, long)[:6:6], 1},
	} {
		var tr trains
		var want []byte
		for i := range c.frames {
			for k := range c.frames[i].Payload {
				c.frames[i].Payload[k] = byte(rand.Uint32())
			}
		}
		for _, f := range c.frames {
			want = append(want, f.Payload...)
		}
		for range 2 { // what was before does not count
			size, pieces := tr.gather(c.frames)
			var got []byte
			for _, v := range tr.vec[1 : 1+pieces] {
				got = append(got, unsafe.Slice(v.Base, v.Len)...)
			}
			if size != len(want) || pieces != c.pieces || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of %d in %d pieces, want %d; the bytes are theirs: %v",
					c.name, size, len(want), pieces, c.pieces, bytes.Equal(got, want))
			}
		}
	}
}
