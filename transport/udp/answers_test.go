package udp

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
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
	roamer.Authenticates()
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
	roamer.Authentic(&in[0])
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
