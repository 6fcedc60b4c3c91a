package transport_test

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// Written in place or elsewhere, a frame is the same bytes; what is not room before the payload is
// not used.
func TestPutHeaderInPlace(t *testing.T) {
	const size = 64
	for _, c := range []struct {
		name     string
		room     int
		apart    bool // the payload is in another array
		tooShort bool // the room's array ends before the payload does
		untagged bool // whether the header fits
		tagged   bool
	}{
		{name: "as much as a header takes", room: transport.HeaderLen, untagged: true},
		{name: "too little for a header", room: transport.HeaderLen - 1},
		{name: "as much as a tagged header takes", room: transport.MaxHeaderLen, untagged: true, tagged: true},
		{name: "too little for a tagged header", room: transport.MaxHeaderLen - 1, untagged: true},
		{name: "more", room: 40, untagged: true, tagged: true},
		{name: "none", room: 0},
		{name: "not before the payload", room: 40, apart: true},
		{name: "of another capacity", room: 40, tooShort: true},
	} {
		for _, tagged := range []bool{false, true} {
			memory := make([]byte, c.room+size)
			f := transport.Frame{Dst: transport.MAC{2, 1}, Src: transport.MAC{2, 2}, EtherType: 0x88b5,
				OptionalTag: transport.OptionalTag{Tagged: tagged}, Payload: memory[c.room:], Headroom: memory[:c.room]}
			if tagged {
				f.Tag = transport.Tag{VID: 7, PCP: 3}
			}
			if c.apart {
				f.Payload = make([]byte, size)
			}
			if c.tooShort {
				f.Headroom = f.Headroom[:c.room:c.room]
			}
			copy(f.Payload, "payload")
			want, fits := f.AppendTo(nil), c.untagged
			if tagged {
				fits = c.tagged
			}
			before := bytes.Clone(memory)
			b, ok := f.PutHeaderInPlace()
			if ok != fits || ok && !bytes.Equal(b, want) || !ok && !bytes.Equal(memory, before) {
				t.Errorf("%s, tagged %t: %x, %t", c.name, tagged, b, ok)
			}
		}
	}
}
