package afpacket_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// drain polls until there is nothing, and returns the numbers of frames that frameOf has made.
func drain(t *testing.T, l transport.Link) (numbers []int) {
	t.Helper()
	in := make([]transport.Frame, 200)
	for {
		n, err := l.Poll(in)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return numbers
		}
		for _, f := range in[:n] {
			numbers = append(numbers, int(binary.BigEndian.Uint32(f.Payload)))
		}
	}
}

// series makes frames with numbers from the first one on.
func series(to transport.Link, first, n, size int) (frames []transport.Frame) {
	for i := range n {
		frames = append(frames, frameOf(to, first+i, size, transport.OptionalTag{}))
	}
	return frames
}

// A Poll that takes all of a full ring, while the slot of a train is held of which frames were left,
// looks at each slot once.
func TestTrains_LeftOversInAFullRing(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true, small: true})
		testbed.MeetTrains(t, a, b)
		drain(t, b)
		for range 3 {
			send(t, a, series(b, 0, 5, 60)...)
			if n, err := b.Poll(make([]transport.Frame, 4)); n != 4 || err != nil {
				t.Fatal(n, err)
			}
			for _, f := range series(b, 5, 40, 60) { // more than the ring has slots
				send(t, a, f)
			}
			for i, n := range drain(t, b) {
				if n != 4+i {
					t.Fatalf("frame %d came in place of %d", n, 4+i)
				}
			}
			send(t, a, series(b, 99, 1, 60)...)
			if got := drain(t, b); !slices.Equal(got, []int{99}) {
				t.Fatalf("%v came in place of the frame that was sent then", got)
			}
		}
	})
}

// Trains that nobody has polled when the interface goes down come first once it is up again: none
// stays behind and comes in place of a later one. Wait says that the interface went down.
func TestTrains_WhileTheInterfaceGoesDown(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		drain(t, b)
		send(t, a, series(b, 0, 10, 1400)...)
		send(t, a, series(b, 10, 10, 1400)...)
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		in := make([]transport.Frame, 200)
		n, err := b.Poll(in)
		if err != nil { // a packet link's says it, too
			n, err = b.Poll(in)
		}
		if n != 20 || err != nil {
			t.Errorf("%d frames, %v; want the 20 that had come before", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := b.Wait(ctx); !errors.Is(err, transport.ErrInterfaceDown) {
			t.Errorf("Wait: %v", err)
		}
		if err := bed.Node(1).SetUp(0, true); err != nil {
			t.Fatal(err)
		}
		for first := 100; first < 103; first++ {
			var got []int
			for len(got) == 0 && ctx.Err() == nil { // until there is a carrier again
				send(t, a, series(b, first, 10, 1400)...)
				got = drain(t, b)
			}
			if len(got) == 0 || got[0] != first {
				t.Errorf("frames %v came in place of the train from %d on", got, first)
			}
		}
	})
}

// A link for IPv4 packets receives what IPv4 packets there are: they are no trains.
func TestTrains_NotOfIPv4(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		const ipv4 = 0x0800
		a := open(0, settings{trains: true, etherType: ipv4})
		b := open(1, settings{trains: true, etherType: ipv4})
		if n := transport.TrainFrames(a); n != 0 {
			t.Errorf("trains of %d frames", n)
		}
		f := frameOf(b, 1, 100, transport.OptionalTag{})
		f.EtherType = ipv4
		send(t, a, f)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		in := make([]transport.Frame, 1)
		for n := 0; n == 0; {
			if err := b.Wait(ctx); err != nil {
				t.Fatalf("%v, and %+v", err, b.Counters())
			}
			n, _ = b.Poll(in)
		}
		if in[0].EtherType != ipv4 || len(in[0].Payload) != 100 {
			t.Errorf("%v, %d bytes", in[0].EtherType, len(in[0].Payload))
		}
	})
}

// Packets that look like trains, and have no frames for the link, keep no slots of a ring: there is
// room for the next frame once a Poll has looked at them.
func TestTrains_FloodOfUnwantedOnes(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{trains: true, small: true})
		group := transport.Frame{Dst: transport.MAC{3, 0, 0, 0, 0, 9}, Src: a.MAC(), EtherType: 0x0800}
		group.Payload, _ = hex.DecodeString("45000024000040000111" + "0321" + "ef524c01ef524c02" +
			"0001" + "88b5" + "0010" + "76ca" + strings.Repeat("00", 18))
		for range 40 { // more than the ring has slots
			raw(t, bed, 0, group.AppendTo(nil))
		}
		in := make([]transport.Frame, 64)
		if n, err := b.Poll(in); n != 0 || err != nil {
			t.Errorf("Poll: %d frames, %v; want none", n, err)
		}
		send(t, a, series(b, 7, 1, 60)...)
		if got := drain(t, b); !slices.Equal(got, []int{7}) {
			t.Errorf("received %v, want the frame that was sent then", got)
		}
	})
}
