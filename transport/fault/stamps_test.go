package fault_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
)

// stamper is a link that stamps the frames of a Poll with 1 s, 2 s and so on.
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

// Each frame has its own stamp where others before it are lost, and the second of two has none.
func TestStamps(t *testing.T) {
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	inner := &stamper{Link: links[1]}
	cfg := fault.Config{Loss: 1, Match: func(f *transport.Frame) bool { return f.Payload[0] == 'L' }}
	l, err := fault.New(inner, rand.New(rand.NewPCG(1, 0)), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = links[0].Close(), l.Close() }()
	stamps, ok := transport.As[transport.Stamper](l)
	if !ok {
		t.Fatal("the inner link's stamps are not found")
	}
	var sent []transport.Frame
	for _, text := range []string{"Lost", "first", "Lost", "second"} {
		sent = append(sent, transport.Frame{Dst: l.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte(text)})
	}
	if n, err := links[0].Send(sent); n != len(sent) || err != nil {
		t.Fatal(n, err)
	}
	frames := make([]transport.Frame, 8)
	check := func(want ...transport.Stamp) {
		t.Helper()
		if n, err := l.Poll(frames); n != len(want) || err != nil {
			t.Fatal(n, err)
		}
		for i := range frames {
			w := transport.Stamp{} // of a frame that is not there
			if i < len(want) {
				w = want[i]
			}
			if got := stamps.ReceivedStamp(i); got != w {
				t.Errorf("frame %d: stamp %v, want %v", i, got, w)
			}
		}
	}
	at := func(second int64) transport.Stamp { return transport.Stamp{Software: time.Unix(second, 0)} }
	check(at(2), at(4))
	if err := l.SetConfig(fault.Config{Duplicate: 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := links[0].Send(sent[:1]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	check(at(1), transport.Stamp{})
	if err := l.SetConfig(fault.Config{}); err != nil {
		t.Fatal(err)
	}
	if n, err := links[0].Send(sent[:2]); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	check(at(1), at(2))
}
