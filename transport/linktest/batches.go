package linktest

import (
	"bytes"
	"context"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// batchFrames is the suite's batch. At most two batches are under way at a time.
const batchFrames = 64

func batchOrder(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, batchFrames)...)
	send(t, a, numberedBatch(b.MAC(), batchFrames, batchFrames)...)
	wantSeeds(t, receive(t, b, 2*batchFrames), 0, 2*batchFrames)
	if n, err := a.Send(nil); n != 0 || err != nil {
		t.Errorf("Send of no frames: n=%d, %v; want 0, nil", n, err)
	}
}

// shortSlice: frames that do not fit into Poll's slice come with the next Poll, in order.
func shortSlice(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, batchFrames)...)
	polls := 0
	room := func() int { polls++; return polls % 8 }
	got := receiveInto(t, b, room, func(got []transport.Frame) bool { return len(got) >= batchFrames })
	wantSeeds(t, got, 0, batchFrames)
}

// viewsHold: the frames of one Poll stay as they are while more arrive.
func viewsHold(t *testing.T, a, b transport.Link) {
	send(t, a, numberedBatch(b.MAC(), 0, batchFrames)...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	views := make([]transport.Frame, batchFrames)
	n, err := 0, b.Wait(ctx)
	for n == 0 && err == nil && ctx.Err() == nil { // Wait may return early
		n, err = b.Poll(views)
	}
	if n == 0 || err != nil {
		t.Fatalf("Wait and Poll: n=%d, %v", n, err)
	}
	var before []transport.Frame
	for _, f := range views[:n] {
		before = append(before, clone(f))
	}
	send(t, a, numberedBatch(b.MAC(), batchFrames, batchFrames)...)
	for i, f := range views[:n] {
		if !bytes.Equal(f.Payload, before[i].Payload) {
			t.Fatalf("frame %d of %d changed before the next Poll", i, n)
		}
	}
	receiveUntil(t, b, func(got []transport.Frame) bool {
		return len(got) > 0 && seedOf(got[len(got)-1].Payload) == 2*batchFrames-1
	})
}

// payloadReuse: when Send returns, the frames and their payloads are the caller's again.
func payloadReuse(t *testing.T, a, b transport.Link) {
	f := numbered(b.MAC(), 0)
	for i := range uint64(batchFrames) {
		copy(f.Payload, payload(i, len(f.Payload)))
		send(t, a, f)
		clear(f.Payload)
	}
	got := receive(t, b, batchFrames)
	wantSeeds(t, got, 0, batchFrames)
	for i, f := range got {
		wantPayload(t, f.Payload, payload(uint64(i), 64))
	}
}
