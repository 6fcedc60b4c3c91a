package shm_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/shm"
)

// stamper is a wire that stamps the frames of a Poll with 1 s, 2 s and so on, and says nothing of
// others.
type stamper struct {
	*fabric.Link
	came int
}

func (s *stamper) Poll(frames []transport.Frame) (n int, err error) {
	s.came, err = s.Link.Poll(frames)
	return s.came, err
}

func (*stamper) StampFrames(bool) error               { return nil }
func (*stamper) SentStamps([]transport.SentStamp) int { return 0 }

func (s *stamper) ReceivedStamp(i int) transport.Stamp {
	if i >= s.came {
		return transport.Stamp{}
	}
	return transport.Stamp{Software: time.Unix(int64(i)+1, 0)}
}

// Of the frames of a Poll those have stamps that have come by the wire, each its own.
func TestWire_Stamps(t *testing.T) {
	t.Run("memory and wire in one Poll", func(t *testing.T) { checkStamps(t, make([]transport.Frame, 4)) })
	t.Run("the wire is first in the second", func(t *testing.T) { checkStamps(t, make([]transport.Frame, 2)) })
}

func checkStamps(t *testing.T, frames []transport.Frame) {
	w, dir := wires(t, 3), shm.Folder(t)
	a := open(t, shm.Config{Dir: dir, Wire: &stamper{Link: w[0]}})
	b := open(t, shm.Config{Dir: dir, Wire: w[1]})
	stamps, ok := transport.As[transport.Stamper](a)
	if !ok {
		t.Fatal("the wire's stamps are not found")
	}
	if n, err := b.Send([]transport.Frame{text(a.MAC(), "memory"), text(transport.Broadcast, "both")}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := w[2].Send([]transport.Frame{text(a.MAC(), "wire")}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	// By the wire come the second copy of the broadcast, which is dropped, and a frame.
	want := map[string]int64{"mem": 0, "bot": 0, "wir": 2}
	for end := time.Now().Add(patience); len(want) > 0 && time.Now().Before(end); runtime.Gosched() {
		n, err := a.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range frames[:n] {
			name := string(f.Payload[:3])
			var got int64
			if s := stamps.ReceivedStamp(i); !s.Software.IsZero() {
				got = s.Software.Unix()
			}
			if got != want[name] {
				t.Errorf("%q: stamp %d, want %d", name, got, want[name])
			}
			delete(want, name)
		}
		if n < len(frames) && !stamps.ReceivedStamp(n).Software.IsZero() {
			t.Errorf("a stamp behind %d frames", n)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if _, ok := transport.As[transport.Stamper](b); ok {
		t.Error("a link whose wire has no stamps has some")
	}
}
