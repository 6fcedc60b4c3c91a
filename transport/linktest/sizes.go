package linktest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// bothTags is no tag and a tag: the tag does not count against the MTU or the padding.
var bothTags = []transport.OptionalTag{transport.Untagged, transport.Tagged(transport.Tag{VID: 5, PCP: 1})}

// largestPayload: a payload of the MTU arrives whole.
func largestPayload(t *testing.T, a, b transport.Link) {
	for _, tag := range bothTags {
		f := numbered(b.MAC(), 1)
		f.OptionalTag, f.Payload = tag, payload(7, a.MTU())
		delivers(t, a, b, f)
	}
}

func tooLarge(t *testing.T, a, b transport.Link) {
	for _, tag := range bothTags {
		f := numbered(b.MAC(), 1)
		f.OptionalTag, f.Payload = tag, payload(7, a.MTU()+1)
		wantSizeError(t, a, 0, f)
	}
	withholds(t, a, b)
}

// tooLargeInBatch: Send takes the frames before the one that is too large, and none after it.
func tooLargeInBatch(t *testing.T, a, b transport.Link) {
	batch := numberedBatch(b.MAC(), 0, 5)
	batch[2].Payload = payload(2, a.MTU()+1)
	wantSizeError(t, a, 2, batch...)
	send(t, a, numbered(b.MAC(), mark))
	wantSeeds(t, receiveMark(t, b), 0, 2)
}

// wantSizeError sends frames, of which the one with index wantN is one byte over the MTU.
func wantSizeError(t *testing.T, l transport.Link, wantN int, frames ...transport.Frame) {
	t.Helper()
	n, err := l.Send(frames)
	var size *transport.SizeError
	if n != wantN || !errors.As(err, &size) || !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("Send of one byte over the MTU: n=%d, %v; want n=%d and a *SizeError", n, err, wantN)
		return
	}
	if size.Size != l.MTU()+1 || size.Max != l.MTU() {
		t.Errorf("got %v, want size %d and bound %d in it", size, l.MTU()+1, l.MTU())
	}
}

// padding: a frame too short for a wire may arrive longer, by zeros, up to a payload of 46 bytes. A
// longer frame goes before each, to show what a link leaves in its buffers.
func padding(t *testing.T, a, b transport.Link) {
	for _, size := range []int{0, 1, 8, 17, 41, 42, 43, 45, 46, 47, 60} {
		for _, tag := range bothTags {
			delivers(t, a, b, numbered(b.MAC(), ^uint64(0)))
			f := numbered(b.MAC(), 1)
			f.OptionalTag, f.Payload = tag, payload(0xa1a2a3a4a5a6a7a8, size)
			delivers(t, a, b, f)
		}
	}
}

// headroom: a frame arrives as it is, whatever room there is before its payload. A link may write
// to that room, and to nothing around it.
func headroom(t *testing.T, a, b transport.Link) {
	const guard = 8
	for _, room := range []int{0, 1, transport.HeaderLen, transport.MaxHeaderLen, transport.MaxHeaderLen + 22} {
		for _, size := range []int{8, 60, a.MTU()} {
			for _, tag := range bothTags {
				sent := payload(uint64(room), size)
				memory := untouched(guard + room + size + guard)
				f := numbered(b.MAC(), 0)
				f.OptionalTag, f.Headroom, f.Payload = tag, memory[guard:][:room], memory[guard+room:][:size]
				copy(f.Payload, sent)
				delivers(t, a, b, f)
				around := append(bytes.Clone(memory[:guard]), memory[guard+room+size:]...)
				if !bytes.Equal(f.Payload, sent) || !bytes.Equal(around, untouched(2*guard)) {
					t.Errorf("headroom of %d, %d bytes: after Send the memory is %x", room, size, head(memory))
				}
			}
		}
	}
}

// headroomElsewhere: room that is not just before the payload is not used.
func headroomElsewhere(t *testing.T, a, b transport.Link) {
	elsewhere := untouched(2 * a.MTU())
	f := numbered(b.MAC(), 0)
	f.Headroom, f.Payload = elsewhere[:transport.MaxHeaderLen], payload(3, a.MTU())
	delivers(t, a, b, f)
	if !bytes.Equal(elsewhere, untouched(2*a.MTU())) {
		t.Error("memory that is not before the payload was written to")
	}
}

// untouched returns memory in which every write shows.
func untouched(size int) []byte { return bytes.Repeat([]byte{0xa5}, size) }
