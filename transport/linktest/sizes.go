package linktest

import (
	"errors"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// largestPayload: an MTU's worth arrives whole, tagged or not: the tag does not count.
func largestPayload(t *testing.T, a, b transport.Link) {
	for _, tagged := range []bool{false, true} {
		f := numbered(b.MAC(), 1)
		f.Payload = payload(7, a.MTU())
		if f.Tagged = tagged; tagged {
			f.Tag = transport.Tag{VID: 5, PCP: 1}
		}
		send(t, a, f)
		wantFrame(t, receive(t, b, 1)[0], f, a.MAC())
	}
}

func tooLarge(t *testing.T, a, b transport.Link) {
	f := numbered(b.MAC(), 1)
	f.Payload = payload(7, a.MTU()+1)
	n, err := a.Send([]transport.Frame{f})
	wantSizeError(t, n, err, 0, a.MTU())
	f.Tagged, f.Tag = true, transport.Tag{VID: 5}
	n, err = a.Send([]transport.Frame{f})
	wantSizeError(t, n, err, 0, a.MTU())

	send(t, a, numbered(b.MAC(), mark))
	if got := receiveMark(t, b); len(got) != 0 {
		t.Errorf("a refused frame arrived, with %d bytes", len(got[0].Payload))
	}
}

// tooLargeInBatch: n counts the frames before the one that is too large; it and those after do not
// go.
func tooLargeInBatch(t *testing.T, a, b transport.Link) {
	batch := numberedBatch(b.MAC(), 0, 5)
	batch[2].Payload = payload(2, a.MTU()+1)
	n, err := a.Send(batch)
	wantSizeError(t, n, err, 2, a.MTU())

	send(t, a, numbered(b.MAC(), mark))
	wantSeeds(t, receiveMark(t, b), 0, 2)
}

func wantSizeError(t *testing.T, n int, err error, wantN, mtu int) {
	t.Helper()
	var size *transport.SizeError
	if n != wantN || !errors.As(err, &size) || !errors.Is(err, transport.ErrTooLarge) {
		t.Errorf("Send of one byte over the MTU: n=%d, %v; want n=%d and a *SizeError", n, err, wantN)
		return
	}
	if size.Size != mtu+1 || size.Max != mtu {
		t.Errorf("got %v, want size %d and bound %d in it", size, mtu+1, mtu)
	}
}

// padding: a frame too short for a wire may arrive longer, by zeros, up to a payload of 46 bytes.
func padding(t *testing.T, a, b transport.Link) {
	for _, size := range []int{0, 1, 8, 17, 41, 42, 43, 45, 46, 47, 60} {
		for _, tagged := range []bool{false, true} {
			f := numbered(b.MAC(), 1)
			f.Payload = payload(0xa1a2a3a4a5a6a7a8, size)
			if f.Tagged = tagged; tagged {
				f.Tag = transport.Tag{VID: 5, PCP: 1}
			}
			if size > a.MTU() {
				continue
			}
			// A longer frame first, so that what a link leaves in its buffers would show.
			send(t, a, numbered(b.MAC(), ^uint64(0)), f)
			wantFrame(t, receive(t, b, 2)[1], f, a.MAC())
		}
	}
}
