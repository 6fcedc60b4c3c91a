package linktest

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// headroom: a frame arrives as it is, whatever room there is before its payload. A link may write
// to that room, and to nothing around it.
func headroom(t *testing.T, a, b transport.Link) {
	const guard = 8
	for _, room := range []int{0, 1, transport.HeaderLen, transport.MaxHeaderLen, transport.MaxHeaderLen + 22} {
		for _, size := range []int{8, 60, a.MTU()} {
			for _, tag := range []*transport.Tag{nil, {VID: 5, PCP: 1}} {
				sent := payload(uint64(room), size)
				memory := bytes.Repeat([]byte{0xa5}, guard+room+size+guard)
				f := numbered(b.MAC(), 0)
				f.Headroom = memory[guard:][:room]
				f.Payload = memory[guard+room:][:size]
				copy(f.Payload, sent)
				if tag != nil {
					f.Tagged, f.Tag = true, *tag
				}
				send(t, a, f)
				wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
				around := append(bytes.Clone(memory[:guard]), memory[guard+room+size:]...)
				if !bytes.Equal(f.Payload, sent) || !bytes.Equal(around, bytes.Repeat([]byte{0xa5}, 2*guard)) {
					t.Errorf("headroom of %d, %d bytes: after Send the memory is %x", room, size, head(memory))
				}
			}
		}
	}
}

// headroomElsewhere: room that is not before the payload after all is not used.
func headroomElsewhere(t *testing.T, a, b transport.Link) {
	elsewhere := bytes.Repeat([]byte{0xa5}, 2*a.MTU())
	f := numbered(b.MAC(), 0)
	f.Payload = payload(3, a.MTU())
	f.Headroom = elsewhere[:transport.MaxHeaderLen]
	send(t, a, f)
	wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
	if !bytes.Equal(elsewhere, bytes.Repeat([]byte{0xa5}, 2*a.MTU())) {
		t.Error("memory that is not before the payload was written to")
	}
}
