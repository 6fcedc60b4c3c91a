package afpacket_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// trainsOf returns how many trains a link has sent and received.
func trainsOf(l transport.Link) (sent, received uint64) {
	t, _ := transport.As[transport.Trainer](l)
	return t.Trains()
}

// frameOf makes a frame with bytes that its number determines.
func frameOf(to transport.Link, number, size int, tag transport.OptionalTag) transport.Frame {
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(number*31 + i)
	}
	if size >= 4 {
		binary.BigEndian.PutUint32(payload, uint32(number))
	}
	return transport.Frame{Dst: to.MAC(), EtherType: transport.EtherTypeDefault, OptionalTag: tag, Payload: payload}
}

// sameFrames checks that frames are what was sent, in order. Short ones may be padded.
func sameFrames(t *testing.T, from transport.Link, sent, got []transport.Frame) {
	t.Helper()
	for i, f := range got {
		w := sent[i]
		if f.Src != from.MAC() || f.Dst != w.Dst || f.EtherType != w.EtherType || f.OptionalTag != w.OptionalTag ||
			!bytes.HasPrefix(f.Payload, w.Payload) || len(f.Payload) > max(len(w.Payload), 46) {
			t.Fatalf("frame %d: %v>%v %v %v, %d bytes; sent %v %v, %d bytes", i, f.Src, f.Dst, f.EtherType,
				f.OptionalTag, len(f.Payload), w.EtherType, w.OptionalTag, len(w.Payload))
		}
	}
}

// offloads switches features of a node's NIC.
func offloads(t *testing.T, bed *testbed.Bed, node int, features map[string]bool) {
	t.Helper()
	err := bed.Node(node).Do(func() error {
		tool, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		return tool.Change("eth0", features)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Frames arrive as they were sent and in order, whatever goes together: joined, cut by a NIC or the
// kernel before they arrive, or joined again by the receiver's NIC.
func TestTrains_ArriveAsFrames(t *testing.T) {
	tags := []transport.OptionalTag{
		{}, transport.Tagged(transport.Tag{VID: 100, PCP: 5}), transport.Tagged(transport.Tag{VID: 100, DEI: true}),
	}
	for name, set := range map[string]func(*testing.T, *testbed.Bed){
		"joined": func(*testing.T, *testbed.Bed) {},
		"cut": func(t *testing.T, bed *testbed.Bed) {
			offloads(t, bed, 0, map[string]bool{"tx-generic-segmentation": false, "tx-udp-segmentation": false})
		},
		"cut, without checksums": func(t *testing.T, bed *testbed.Bed) {
			offloads(t, bed, 0, map[string]bool{"tx-generic-segmentation": false, "tx-udp-segmentation": false,
				"tx-checksum-ip-generic": false})
		},
		"cut and joined": func(t *testing.T, bed *testbed.Bed) {
			offloads(t, bed, 0, map[string]bool{"tx-generic-segmentation": false, "tx-udp-segmentation": false})
			offloads(t, bed, 1, map[string]bool{"rx-gro": true, "rx-udp-gro-forwarding": true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
				a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
				set(t, bed)
				testbed.MeetTrains(t, a, b, tags[1])
				seed := rand.Uint64()
				rng := rand.New(rand.NewPCG(seed, 0))
				defer func() {
					if t.Failed() {
						t.Logf("seed %d", seed)
					}
				}()
				end, trains := time.Now().Add(patience), uint64(0)
				for round := 0; round < 60 || trains < 100 && time.Now().Before(end); round++ {
					var out []transport.Frame
					for range 1 + rng.IntN(5) {
						size, tag := 1+rng.IntN(a.MTU()), tags[rng.IntN(len(tags))]
						for range 1 + rng.IntN(50) {
							out = append(out, frameOf(b, len(out), size, tag))
						}
						if rng.IntN(2) == 0 {
							out = append(out, frameOf(b, len(out), rng.IntN(size+1), tag))
						}
					}
					send(t, a, out...)
					sameFrames(t, a, out, testbed.Receive(t, b, len(out)))
					drain(t, a) // the answers: trains go on however long it takes
					trains, _ = trainsOf(a)
				}
				if trains < 100 {
					t.Errorf("%d trains sent", trains)
				}
				if c := b.Counters(); c.RxMalformed != 0 || c.RxDropped != 0 {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// A host that does not take trains, an older version's or one without the setting, gets frames as
// they are.
func TestTrains_OldHostsGetPlainFrames(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{})
		var out []transport.Frame
		for i := range 30 {
			out = append(out, frameOf(b, i, 500, transport.OptionalTag{}))
		}
		for range 5 {
			send(t, a, out...)
			sameFrames(t, a, out, testbed.Receive(t, b, len(out)))
			send(t, b, frameOf(a, 0, 100, transport.OptionalTag{}))
			testbed.Receive(t, a, 1)
		}
		if sent, _ := trainsOf(a); sent != 0 {
			t.Errorf("%d trains sent", sent)
		}
		if c := b.Counters(); c.RxFrames != 150 || c.RxMalformed != 0 || c.RxDropped != 0 {
			t.Errorf("%+v, want 150 frames and nothing else", c)
		}
	})
}

// Neither group addresses nor frames of another EtherType go in trains.
func TestTrains_AreUnicast(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		before, _ := trainsOf(a)
		f := frameOf(b, 1, 100, transport.OptionalTag{})
		f.Dst = transport.Broadcast
		send(t, a, f, f, f, f)
		if got := testbed.Receive(t, b, 4); got[3].Dst != transport.Broadcast {
			t.Errorf("received %v", got[2].Dst)
		}
		f.Dst, f.EtherType = b.MAC(), 0x88b6
		send(t, a, f, f, f, f)
		if sent, _ := trainsOf(a); sent != before {
			t.Errorf("%d trains", sent-before)
		}
	})
}

// Where both NICs have one queue, a frame that goes alone goes as it is, without a train's headers.
func TestTrains_SingleFramesGoAsTheyAre(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		testbed.MeetTrains(t, b, a)
		for _, l := range [][2]transport.Link{{a, b}, {b, a}} {
			before, _ := trainsOf(l[0])
			for i := range 5 {
				f := frameOf(l[1], i, 100, transport.OptionalTag{})
				send(t, l[0], f)
				sameFrames(t, l[0], []transport.Frame{f}, testbed.Receive(t, l[1], 1))
			}
			if sent, _ := trainsOf(l[0]); sent != before {
				t.Errorf("%d of 5 frames went as trains", sent-before)
			}
		}
	})
}

// A link of all EtherTypes takes none: nothing would tell trains from other packets. Nor does it keep
// others from them.
func TestTrains_NotOfAnyEtherType(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		all := open(1, settings{etherType: transport.EtherTypeAny, trains: true})
		if n := transport.TrainFrames(all); n != 0 {
			t.Errorf("trains of %d frames", n)
		}
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
	})
}

// A program that takes no trains gets frames as they are, also where another one on its interface takes
// trains: that is sent none as long as the first one runs.
func TestTrains_NotBesidePlainSockets(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		plain, other := open(1, settings{}), open(1, settings{etherType: 0x88b6})
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		var out []transport.Frame
		for i := range 30 {
			out = append(out, frameOf(b, i, 500, transport.OptionalTag{}))
		}
		for range 20 {
			send(t, a, out...)
			for _, l := range []transport.Link{b, plain} {
				sameFrames(t, a, out, testbed.Receive(t, l, len(out)))
			}
			send(t, b, frameOf(a, 0, 100, transport.OptionalTag{}))
			testbed.Receive(t, a, 1) // and what may have answered an offer
		}
		if sent, _ := trainsOf(a); sent != 0 {
			t.Errorf("%d trains sent", sent)
		}
		if err := plain.Close(); err != nil {
			t.Fatal(err)
		}
		testbed.MeetTrains(t, a, b)
		runtime.KeepAlive(other) // it takes no trains of another EtherType
	})
}

// The windows of some senders wait for Poll, and nothing is lost.
func TestTrains_WindowsWait(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		var out []transport.Frame
		for i := range 40 {
			out = append(out, frameOf(b, i, 1400, transport.OptionalTag{}))
		}
		const trains = 24 // 1.3 MB
		for range trains {
			send(t, a, out...)
		}
		testbed.Receive(t, b, trains*len(out))
		if c := b.Counters(); c.RxDropped != 0 {
			t.Errorf("%d dropped", c.RxDropped)
		}
	})
}

// What there is no room for is lost and counted; what comes later arrives.
func TestTrains_SmallReceiveMemory(t *testing.T) {
	t.Run("few slots", func(t *testing.T) { overrun(t, true) })
	t.Run("more than may wait for recv", func(t *testing.T) { overrun(t, false) })
}

func overrun(t *testing.T, small bool) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true, small: small})
		testbed.MeetTrains(t, a, b)
		var out []transport.Frame
		for i := range 40 {
			out = append(out, frameOf(b, i, 1400, transport.OptionalTag{}))
		}
		for range 900 { // 50 MB; each a slot of 1,024, and of 32 MB that may wait
			send(t, a, out...)
		}
		in := make([]transport.Frame, 64)
		for n := 1; n > 0; {
			var err error
			if n, err = b.Poll(in); err != nil {
				t.Fatal(err)
			}
		}
		if c := b.Counters(); c.RxDropped == 0 || c.RxMalformed != 0 {
			t.Errorf("%+v, want drops, and nothing malformed", c)
		}
		for range 3 {
			send(t, a, out[:20]...)
			sameFrames(t, a, out[:20], testbed.Receive(t, b, 20))
		}
	})
}

// isLinksAnswer reports whether a frame is the answer of a link that takes trains: to an offer, as one
// is due each quarter of a second.
func isLinksAnswer(f *transport.Frame) bool {
	return f.EtherType == 0x0800 && bytes.Equal(f.Payload[12:16], []byte{239, 82, 76, 1}) &&
		binary.BigEndian.Uint16(f.Payload[20:]) == 3
}

// The IP stack of the receiving host takes nothing of it: it neither answers nor delivers.
func TestTrains_SpareTheIPStack(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		all := open(0, settings{etherType: transport.EtherTypeAny})
		a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
		testbed.MeetTrains(t, a, b)
		in := make([]transport.Frame, 64)
		for n := 1; n > 0; {
			var err error
			if n, err = all.Poll(in); err != nil {
				t.Fatal(err)
			}
			for _, f := range in[:n] {
				if f.EtherType == 0x0800 && f.Payload[9] == 1 {
					t.Error("the host has answered by ICMP")
				}
			}
		}
		var out []transport.Frame
		for i := range 5 {
			out = append(out, frameOf(b, i, 100, transport.OptionalTag{}))
		}
		before, _ := trainsOf(a)
		sent := before
		for end := time.Now().Add(patience); sent < before+50 && time.Now().Before(end); sent, _ = trainsOf(a) {
			send(t, a, out...)
			testbed.Receive(t, b, len(out))
			drain(t, a) // the answers of the link
		}
		if sent != before+50 {
			t.Errorf("%d trains, want 50", sent-before)
		}
		for n := 1; n > 0; {
			var err error
			if n, err = all.Poll(in); err != nil {
				t.Fatal(err)
			}
			for _, f := range in[:n] {
				if f.Src == b.MAC() && !isLinksAnswer(&f) {
					t.Errorf("the host has answered: %v, %x", f.EtherType, f.Payload)
				}
			}
		}
	})
}

// What is left of a train is there at the next Poll, ends a Wait at once, and is gone after Close.
func TestTrains_LeftOvers(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		for _, size := range []int{20, 1400} { // a train that fits a slot of the ring, and one that does not
			a, b := open(0, settings{trains: true}), open(1, settings{trains: true})
			testbed.MeetTrains(t, a, b)
			var out []transport.Frame
			for i := range 12 {
				out = append(out, frameOf(b, i, size, transport.OptionalTag{}))
			}
			send(t, a, out...)
			one := make([]transport.Frame, 1)
			for i := range 10 {
				if err := b.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n, err := b.Poll(one); n != 1 || err != nil {
					t.Fatalf("frame %d: %d, %v", i, n, err)
				}
				sameFrames(t, a, out[i:], one)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if n, err := b.Poll(one); n != 0 || !errors.Is(err, transport.ErrClosed) {
				t.Errorf("after Close: %d, %v", n, err)
			}
			_ = a.Close()
		}
	})
}
