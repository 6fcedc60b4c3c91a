package linktest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// patience is how long what must happen may take before a test gives up on it. It is long, for slow
// machines: a link that is right never uses it up. (The suite's own tests, on links that are not,
// shorten it.)
var patience = 10 * time.Second

// payload returns size bytes that no other (seed, size) has. The first eight bytes hold the seed.
func payload(seed uint64, size int) []byte {
	p := make([]byte, max(size, 8))
	binary.BigEndian.PutUint64(p, seed)
	for i := 8; i < len(p); i++ {
		p[i] = byte(uint64(i)*167 + seed*59 + 1)
	}
	return p[:size]
}

// seedOf returns the seed that payload put into p.
func seedOf(p []byte) uint64 {
	if len(p) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(p)
}

// numbered returns an untagged frame to dst with a 64-byte payload made from seed.
func numbered(dst transport.MAC, seed uint64) transport.Frame {
	return transport.Frame{Dst: dst, EtherType: transport.EtherTypeDefault, Payload: payload(seed, 64)}
}

// numberedBatch returns n frames to dst, with seeds from first on.
func numberedBatch(dst transport.MAC, first uint64, n int) []transport.Frame {
	batch := make([]transport.Frame, n)
	for i := range batch {
		batch[i] = numbered(dst, first+uint64(i))
	}
	return batch
}

// send sends all the frames, again where the link is busy. It may be called from any goroutine.
func send(t *testing.T, l transport.Link, frames ...transport.Frame) {
	t.Helper()
	for give := time.Now().Add(patience); len(frames) > 0; {
		n, err := l.Send(frames)
		switch {
		case n < 0 || n > len(frames):
			t.Errorf("Send of %d frames: n=%d", len(frames), n)
			return
		case n < len(frames) && err == nil:
			t.Errorf("Send took %d of %d frames without an error", n, len(frames))
			return
		case err != nil && !errors.Is(err, transport.ErrBusy), err != nil && time.Now().After(give):
			t.Errorf("Send of %d frames: n=%d, %v", len(frames), n, err)
			return
		}
		if frames = frames[n:]; len(frames) > 0 {
			runtime.Gosched()
		}
	}
}

// receive polls l, and waits, until want frames of the suite came; it returns copies of them.
func receive(t *testing.T, l transport.Link, want int) []transport.Frame {
	t.Helper()
	return receiveUntil(t, l, func(got []transport.Frame) bool { return len(got) >= want })
}

// receiveMark returns what l receives before the frame whose payload has the seed mark.
func receiveMark(t *testing.T, l transport.Link) []transport.Frame {
	t.Helper()
	got := receiveUntil(t, l, func(got []transport.Frame) bool {
		return len(got) > 0 && seedOf(got[len(got)-1].Payload) == mark
	})
	return got[:max(len(got)-1, 0)]
}

// receiveUntil polls l, and waits where there is nothing, until enough says so after a frame.
func receiveUntil(t *testing.T, l transport.Link, enough func(got []transport.Frame) bool) []transport.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var got []transport.Frame
	buf := make([]transport.Frame, 1) // one at a time: what follows the last one stays for the next call
	for !enough(got) {
		n, err := l.Poll(buf)
		if err != nil {
			t.Fatalf("Poll after %d frames: %v", len(got), err)
		}
		if n == 0 {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("Wait after %d frames %v: %v", len(got), seeds(got), err)
			}
			continue
		}
		if buf[0].EtherType == transport.EtherTypeDefault {
			got = append(got, clone(buf[0]))
		}
	}
	return got
}

// clone copies f and its payload, which is a view of the link's memory.
func clone(f transport.Frame) transport.Frame {
	f.Payload = bytes.Clone(f.Payload)
	return f
}

// seeds lists the numbers of frames, for messages.
func seeds(frames []transport.Frame) []uint64 {
	s := make([]uint64, len(frames))
	for i := range frames {
		s[i] = seedOf(frames[i].Payload)
	}
	return s
}

// wantFrame compares a received frame with the one that was sent; src is its sender.
func wantFrame(t *testing.T, got, sent transport.Frame, src transport.MAC) {
	t.Helper()
	if got.Dst != sent.Dst || got.Src != src || got.EtherType != sent.EtherType {
		t.Errorf("header: got %v -> %v %v, want %v -> %v %v", got.Src, got.Dst, got.EtherType, src, sent.Dst, sent.EtherType)
	}
	if got.Tagged != sent.Tagged || got.Tag != sent.Tag {
		t.Errorf("tag: got tagged=%t %v, want tagged=%t %v", got.Tagged, got.Tag, sent.Tagged, sent.Tag)
	}
	wantPayload(t, got.Payload, sent.Payload)
}

// minPayload is the payload of the shortest untagged frame on a wire, in bytes.
const minPayload = transport.MinFrameLen - transport.HeaderLen

// wantPayload allows what a wire may add to a short payload: zeros, up to minPayload bytes in all.
func wantPayload(t *testing.T, got, sent []byte) {
	t.Helper()
	if !bytes.HasPrefix(got, sent) {
		t.Errorf("payload: got %d bytes %x, want %d bytes %x", len(got), head(got), len(sent), head(sent))
		return
	}
	rest := got[len(sent):]
	if len(rest) > 0 && len(got) > minPayload {
		t.Errorf("payload of %d bytes arrived as %d: padding goes up to %d", len(sent), len(got), minPayload)
	}
	if len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("payload of %d bytes is padded with %x, want zeros", len(sent), rest)
	}
}

// wantSeeds fails unless frames carry the seeds first, first+1, ... n of them.
func wantSeeds(t *testing.T, frames []transport.Frame, first uint64, n int) {
	t.Helper()
	if len(frames) != n {
		t.Fatalf("got %d frames %v, want %d", len(frames), seeds(frames), n)
	}
	for i := range frames {
		if s := seedOf(frames[i].Payload); s != first+uint64(i) {
			t.Fatalf("frame %d is number %d, want %d; all: %v", i, s, first+uint64(i), seeds(frames))
		}
	}
}

// head returns the beginning of b, for messages.
func head(b []byte) []byte { return b[:min(len(b), 80)] }

func mustClose(t *testing.T, l transport.Link) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
