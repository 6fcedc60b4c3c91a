package udp

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/transport/trace"
)

// What a station that may have moved is answered is lost with a cable that is cut, recorded and
// logged, as all that is sent.
func TestAnswers_PassWrappers(t *testing.T) {
	inner, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	cable, err := fault.New(inner, rand.New(rand.NewPCG(1, 0)), fault.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var record, log bytes.Buffer
	recorded, err := capture.New(cable, &record)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l := trace.New(recorded, logger, trace.Config{Payload: 8})
	defer l.Close()
	roamer, ok := transport.As[transport.Roamer](l)
	if !ok {
		t.Fatal("the link is no Roamer, where its inner link is")
	}
	roamer.Authenticates(0)
	before, now := newPeer(t, 2), newPeer(t, 2)
	if err := inner.AddStation(Station{Addr: before.at().String(), MAC: before.mac}); err != nil {
		t.Fatal(err)
	}
	f := plainFrame(inner.MAC())
	f.Payload = []byte("asked")
	now.say(t, inner, f)
	in := make([]transport.Frame, 1)
	for n, end := 0, time.Now().Add(10*time.Second); n == 0; {
		if n, err = l.Poll(in); err != nil || time.Now().After(end) {
			t.Fatal("no frame", err)
		}
	}
	for _, text := range []string{"lost", "answer"} {
		cable.Cut(text == "lost")
		answer := transport.Frame{Dst: now.mac, EtherType: transport.EtherTypeDefault, Payload: []byte(text), Answers: &in[0]}
		if n, err := l.Send([]transport.Frame{answer}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if f := now.next(t); string(f.Payload) != "answer" {
		t.Errorf("%q came", f.Payload)
	}
	roamer.Answered(&in[0], true)
	if n, err := l.Send([]transport.Frame{{Dst: now.mac, EtherType: transport.EtherTypeDefault, Payload: []byte("moved")}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if f := now.next(t); string(f.Payload) != "moved" {
		t.Errorf("%q came", f.Payload)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ng, err := pcapgo.NewNgReader(&record, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"asked", "lost", "answer", "moved"} {
		if data, _, err := ng.ReadPacketData(); err != nil || !bytes.HasSuffix(data, []byte(text)) {
			t.Errorf("%q is recorded, want %q; %v", data, text, err)
		}
	}
	if _, _, err := ng.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want EOF", err)
	}
	if got := strings.Count(log.String(), "msg=sent"); got != 3 {
		t.Errorf("%d frames are logged as sent, want 3:\n%s", got, &log)
	}
}

// A frame that a wrapper hands out later, as a copy, says still where it came from: a station can
// prove itself through a link that delays frames.
func TestAnswered_ByADelayedFrame(t *testing.T) {
	inner, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	slow := fault.Config{Delay: 1, DelayMin: 2 * time.Millisecond, DelayMax: 2 * time.Millisecond}
	l, err := fault.New(inner, rand.New(rand.NewPCG(1, 0)), slow)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inner.Authenticates(0)
	before, now := newPeer(t, 2), newPeer(t, 2)
	if err := inner.AddStation(Station{Addr: before.at().String(), MAC: before.mac}); err != nil {
		t.Fatal(err)
	}
	asked, in := plainFrame(inner.MAC()), make([]transport.Frame, 1)
	asked.Payload = []byte("asked")
	now.say(t, inner, asked)
	polls := 0
	for n, end := 0, time.Now().Add(10*time.Second); n == 0; polls++ {
		if n, err = l.Poll(in); err != nil || time.Now().After(end) {
			t.Fatal("no frame", err)
		}
	}
	if polls < 2 {
		t.Fatal("the frame was not delayed")
	}
	answer := transport.Frame{Dst: now.mac, EtherType: transport.EtherTypeDefault, Payload: []byte("answer"), Answers: &in[0]}
	moved := transport.Frame{Dst: now.mac, EtherType: transport.EtherTypeDefault, Payload: []byte("moved")}
	for _, f := range []transport.Frame{answer, moved} {
		if n, err := l.Send([]transport.Frame{f}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if got := now.next(t); !bytes.Equal(got.Payload, f.Payload) {
			t.Errorf("%q came, want %q", got.Payload, f.Payload)
		}
		inner.Answered(&in[0], true)
	}
}

// A note says where a frame of one station came from, and not one of another.
func TestOrigin_IsOfOneFrame(t *testing.T) {
	l, err := Open("127.0.0.1:0", Config{MAC: numbered(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Authenticates(0)
	hear := func(n int, port uint16) transport.Frame {
		f := plainFrame(l.mac)
		f.Src = numbered(n)
		if !l.accept(f.AppendTo(nil), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), &f) {
			t.Fatal("a frame is not handed out")
		}
		return f
	}
	first := hear(2, 1000)
	other := first
	other.Src = numbered(3)
	if m := l.movedFrom(&first); m == nil || m.from.Port() != 1000 {
		t.Errorf("it came from %v, want port 1000", m)
	}
	if m := l.movedFrom(&other); m != nil {
		t.Errorf("another station's came from %v", m)
	}
	if m := l.movedFrom(&transport.Frame{Src: first.Src}); m != nil {
		t.Errorf("one without a note came from %v", m)
	}
}
