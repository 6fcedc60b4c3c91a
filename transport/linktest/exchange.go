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

// patience is how long anything that must happen may take. A correct link never uses it up, so it
// is long, for slow machines. The suite's own tests, on links with faults, shorten it.
var patience = 10 * time.Second

// payload returns size bytes that differ for every (seed, size). The first eight hold the seed.
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

// seeds lists the seeds of frames, for messages.
func seeds(frames []transport.Frame) []uint64 {
	s := make([]uint64, len(frames))
	for i := range frames {
		s[i] = seedOf(frames[i].Payload)
	}
	return s
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

// send sends all the frames, again while the link is busy. It may be called from any goroutine.
func send(t *testing.T, l transport.Link, frames ...transport.Frame) {
	t.Helper()
	for deadline := time.Now().Add(patience); len(frames) > 0; runtime.Gosched() {
		n, err := l.Send(frames)
		busy := errors.Is(err, transport.ErrBusy) && time.Now().Before(deadline)
		if n < 0 || n > len(frames) || n < len(frames) && err == nil || err != nil && !busy {
			t.Errorf("Send of %d frames: n=%d, %v", len(frames), n, err)
			return
		}
		frames = frames[n:]
	}
}

// receive polls l, and waits, until n frames of the suite came. It returns copies of them.
func receive(t *testing.T, l transport.Link, n int) []transport.Frame {
	t.Helper()
	return receiveUntil(t, l, func(got []transport.Frame) bool { return len(got) >= n })
}

// mark is the seed of a frame that is sent behind frames which must not arrive.
const mark = 1 << 40

// receiveMark returns what l receives before the frame with the seed mark.
func receiveMark(t *testing.T, l transport.Link) []transport.Frame {
	t.Helper()
	got := receiveUntil(t, l, func(got []transport.Frame) bool {
		return len(got) > 0 && seedOf(got[len(got)-1].Payload) == mark
	})
	return got[:max(len(got)-1, 0)]
}

// receiveUntil polls l, and waits when there is nothing, until enough is true. It polls one frame
// at a time: what follows the last one stays for the next call.
func receiveUntil(t *testing.T, l transport.Link, enough func(got []transport.Frame) bool) []transport.Frame {
	t.Helper()
	return receiveInto(t, l, func() int { return 1 }, enough)
}

// noOrigin is what no link has noted.
const noOrigin = 0xbad0bad0

// receiveInto is receiveUntil that polls as many frames at a time as room says.
func receiveInto(
	t *testing.T, l transport.Link, room func() int, enough func(got []transport.Frame) bool,
) (got []transport.Frame) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !enough(got) {
		into := make([]transport.Frame, room())
		for i := range into { // as after other uses
			into[i] = transport.Frame{Headroom: []byte("headroom"), Answers: &transport.Frame{}, Origin: noOrigin}
		}
		n, err := l.Poll(into)
		if n < 0 || n > len(into) || err != nil {
			t.Fatalf("Poll into %d frames, after %d: n=%d, %v", len(into), len(got), n, err)
		}
		for _, f := range into[:n] {
			if f.Headroom != nil || f.Answers != nil || f.Origin == noOrigin {
				t.Errorf("frame %d has headroom of %d bytes, answers one: %v, has the origin of another: %v; "+
					"want none of these in a received frame",
					seedOf(f.Payload), len(f.Headroom), f.Answers != nil, f.Origin == noOrigin)
			}
			if f.EtherType == transport.EtherTypeDefault {
				got = append(got, clone(f))
			}
		}
		if n == 0 && len(into) > 0 {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("Wait after %d frames %v: %v", len(got), seeds(got), err)
			}
		}
	}
	return got
}

// clone copies f and its payload, which is a view of the link's memory.
func clone(f transport.Frame) transport.Frame {
	f.Payload = bytes.Clone(f.Payload)
	return f
}

// delivers sends f, which must be the next frame to arrive, as it was sent.
func delivers(t *testing.T, from, to transport.Link, f transport.Frame) {
	t.Helper()
	send(t, from, f)
	got := receive(t, to, 1)[0]
	src := f.Src
	if src.IsZero() {
		src = from.MAC()
	}
	if got.Dst != f.Dst || got.Src != src || got.EtherType != f.EtherType || got.OptionalTag != f.OptionalTag {
		t.Errorf("got %v -> %v %v %v, want %v -> %v %v %v",
			got.Src, got.Dst, got.EtherType, got.OptionalTag, src, f.Dst, f.EtherType, f.OptionalTag)
	}
	wantPayload(t, got.Payload, f.Payload)
}

// withholds sends frames that must not arrive, and one behind them that does.
func withholds(t *testing.T, from, to transport.Link, frames ...transport.Frame) {
	t.Helper()
	send(t, from, append(frames, numbered(to.MAC(), mark))...)
	for _, f := range receiveMark(t, to) {
		t.Errorf("link %v received frame %d for %v", to.MAC(), seedOf(f.Payload), f.Dst)
	}
}

// minPayload is the payload of the shortest untagged frame on a wire, in bytes.
const minPayload = transport.MinFrameLen - transport.HeaderLen

// wantPayload compares payloads. A wire may pad a short one with zeros, up to minPayload bytes.
func wantPayload(t *testing.T, got, sent []byte) {
	t.Helper()
	if !bytes.HasPrefix(got, sent) {
		t.Errorf("payload: got %d bytes %x, want %d bytes %x", len(got), head(got), len(sent), head(sent))
		return
	}
	padding := got[len(sent):]
	if len(padding) > 0 && len(got) > minPayload {
		t.Errorf("payload of %d bytes arrived as %d: padding goes up to %d", len(sent), len(got), minPayload)
	}
	if len(bytes.Trim(padding, "\x00")) > 0 {
		t.Errorf("payload of %d bytes is padded with %x, want zeros", len(sent), padding)
	}
}

// wantSeeds fails unless frames carry the n seeds from first on, in order.
func wantSeeds(t *testing.T, frames []transport.Frame, first uint64, n int) {
	t.Helper()
	if len(frames) != n {
		t.Fatalf("got %d frames %v, want %d", len(frames), seeds(frames), n)
	}
	for i, s := range seeds(frames) {
		if s != first+uint64(i) {
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
