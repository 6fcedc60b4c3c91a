package kernellink

import (
	"slices"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// stampTime is how long a frame with stamps is looked for: the kernel begins to stamp some time
// after it was told to.
const stampTime = 20 * time.Second

// TestStampsBesideTrains checks that frames that go alone have stamps with numbers of their own,
// and that those of trains have none.
func TestStampsBesideTrains[L transport.Link](t *testing.T, open func(ifname string) (L, error)) {
	bed := testbed.ForTest(t, testbed.Config{})
	from, to := testbed.OpenPair(t, bed, open)
	testbed.MeetTrains(t, from, to)
	a, _ := transport.As[transport.Stamper](transport.Link(from))
	if err := a.StampFrames(true); err != nil {
		t.Fatal(err)
	}
	single := transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 64)}
	trains, _ := transport.As[transport.Trainer](transport.Link(from))
	before, _ := trains.Trains()
	var got []uint32
	stamps := make([]transport.SentStamp, 16)
	for _, frames := range []int{8, 1, 8, 1} {
		if n, err := from.Send(slices.Repeat([]transport.Frame{single}, frames)); n != frames || err != nil {
			t.Fatal(n, err)
		}
		for _, s := range stamps[:a.SentStamps(stamps)] {
			got = append(got, s.Frame)
		}
	}
	if after, _ := trains.Trains(); after != before+2 || !slices.Equal(got, []uint32{0, 1}) {
		t.Errorf("of %d trains and two frames: stamps with numbers %v, want 0 and 1", after-before, got)
	}
}

// TestStamps checks that the stamps of a frame lie between the call that sends it and the poll that
// returns it, are counted, and end when they are switched off.
func TestStamps[L transport.Link](t *testing.T, open func(ifname string) (L, error)) {
	bed := testbed.ForTest(t, testbed.Config{})
	from, to := testbed.OpenPair(t, bed, open)
	a, ok := transport.As[transport.Stamper](transport.Link(from))
	b, alsoOK := transport.As[transport.Stamper](transport.Link(to))
	if !ok || !alsoOK {
		t.Fatalf("%T does not stamp frames", from)
	}
	pass := func() (frames int, sent []transport.SentStamp, received transport.Stamp, begun, ended time.Time) {
		begun = time.Now()
		f := transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 64)}
		if _, err := from.Send([]transport.Frame{f}); err != nil {
			t.Fatal(err)
		}
		in := make([]transport.Frame, 4)
		for frames == 0 && time.Since(begun) < stampTime {
			var err error
			if frames, err = to.Poll(in); err != nil {
				t.Fatal(err)
			}
		}
		received, ended = b.ReceivedStamp(0), time.Now()
		all := make([]transport.SentStamp, 4)
		return frames, all[:a.SentStamps(all)], received, begun, ended
	}
	if frames, sent, received, _, _ := pass(); frames != 1 || len(sent) > 0 || received != (transport.Stamp{}) {
		t.Fatalf("not asked for: %d frames, stamps %v and %v", frames, sent, received)
	}
	for _, s := range []transport.Stamper{a, b} {
		if err := s.StampFrames(true); err != nil {
			t.Fatal(err)
		}
	}
	for number, begun := uint32(0), time.Now(); ; number++ {
		frames, sent, received, before, after := pass()
		if frames != 1 || len(sent) != 1 || sent[0].Frame != number {
			t.Fatalf("frame %d: %d frames, stamps %v", number, frames, sent)
		}
		if at := sent[0].Software; at.Before(before) || at.After(after) {
			t.Errorf("frame %d: sent at %v, want between %v and %v", number, at, before, after)
		}
		if received.Software.IsZero() && time.Since(begun) < stampTime {
			continue // the kernel has not begun yet
		}
		if at := received.Software; at.Before(sent[0].Software) || at.After(after) {
			t.Errorf("frame %d: received at %v, want between %v and %v", number, at, sent[0].Software, after)
		}
		break
	}
	for _, s := range []transport.Stamper{a, b} {
		if err := s.StampFrames(false); err != nil {
			t.Fatal(err)
		}
	}
	if frames, sent, received, _, _ := pass(); frames != 1 || len(sent) > 0 || received != (transport.Stamp{}) {
		t.Errorf("switched off: %d frames, stamps %v and %v", frames, sent, received)
	}
}
