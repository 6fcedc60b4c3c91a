package afpacket_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ethernet"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// Of stacked tags the outer one is the frame's. A link for one EtherType does not see such frames, as
// that stands behind the second tag; a link for all EtherTypes does.
func TestStackedTags(t *testing.T) {
	eachShared(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		ours, all := open(1, settings{}), open(1, settings{etherType: transport.EtherTypeAny})
		frame := ethernet.Frame{
			Destination: testbed.MAC(1, 0).HardwareAddr(),
			Source:      testbed.MAC(0, 0).HardwareAddr(),
			ServiceVLAN: &ethernet.VLAN{ID: 200, Priority: 1},
			VLAN:        &ethernet.VLAN{ID: 100},
			EtherType:   ethernet.EtherType(transport.EtherTypeDefault),
			Payload:     make([]byte, 60),
		}
		double, err := frame.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		raw(t, bed, 0, double)
		f := testbed.Receive(t, all, 1)[0]
		if !f.Tagged || f.Tag != (transport.Tag{VID: 200, PCP: 1}) || f.EtherType != transport.EtherTypeVLAN || !bytes.HasPrefix(f.Payload, []byte{0, 100, 0x88, 0xb5}) {
			t.Errorf("%+v", f)
		}
		if l, ok := all.(*ring.Link); ok && l.TPID(0) != 0x88a8 {
			// TPID is of the last Poll, which is receive's.
			t.Errorf("TPID %#x, want 0x88a8", l.TPID(0))
		}
		single := slices.Concat(double[:12], []byte{0x88, 0xa8, 0x60, 7, 0x88, 0xb5}, make([]byte, 60))
		raw(t, bed, 0, single) // a service tag alone, which package ethernet does not make
		if f := testbed.Receive(t, ours, 1)[0]; !f.Tagged || f.Tag != (transport.Tag{VID: 7, PCP: 3}) || f.EtherType != transport.EtherTypeDefault {
			t.Errorf("802.1ad: %+v", f)
		}
	})
}

// Frames without room are counted; the others arrive once and in order.
func TestOverflow(t *testing.T) {
	eachLink(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{small: true})
		const total = 20_000
		for i := range total {
			payload := make([]byte, 60)
			binary.BigEndian.PutUint32(payload, uint32(i))
			send(t, a, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: payload})
		}
		frames := make([]transport.Frame, 16)
		last, received := -1, 0
		for {
			n, err := b.Poll(frames)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break // all of it went through before Send returned: the pair has no queue
			}
			for _, f := range frames[:n] {
				number := int(binary.BigEndian.Uint32(f.Payload))
				if number <= last {
					t.Fatalf("frame %d after %d", number, last)
				}
				last = number
				received++
			}
		}
		c := b.Counters()
		if received == 0 || c.RxDropped == 0 || uint64(received) != c.RxFrames || c.RxFrames+c.RxDropped != total {
			t.Errorf("%d sent, %d received, %+v", total, received, c)
		}
	})
}

// TCP on the same interfaces and the links do not disturb each other.
func TestTCPIsUndisturbed(t *testing.T) {
	eachLink(t, func(t *testing.T, bed *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{promiscuous: true}), open(1, settings{promiscuous: true})
		address := net.JoinHostPort(testbed.IP(1, 0).String(), "7000")
		listener, err := testbed.In(bed.Node(1), func() (net.Listener, error) { return net.Listen("tcp", address) })
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		got := make(chan []byte, 1)
		go func() {
			c, err := listener.Accept()
			if err != nil {
				got <- nil
				return
			}
			b, _ := io.ReadAll(c)
			got <- b
		}()
		client, err := testbed.In(bed.Node(0), func() (net.Conn, error) { return net.Dial("tcp", address) })
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = client.Write(data); _ = client.Close() }()
		for i := range 2000 {
			send(t, a, transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 1000)})
			if f := testbed.Receive(t, b, 1)[0]; len(f.Payload) != 1000 || f.EtherType != transport.EtherTypeDefault {
				t.Fatalf("frame %d: %d bytes of %#x", i, len(f.Payload), f.EtherType)
			}
		}
		select {
		case b := <-got:
			if !bytes.Equal(b, data) {
				t.Errorf("%d bytes came, and differ", len(b))
			}
		case <-time.After(patience):
			t.Error("the transfer does not end")
		}
	})
}

// A link does not see other EtherTypes, groups that were not joined, or frames for other stations;
// a promiscuous one sees the last two.
func TestForeignFrames(t *testing.T) {
	eachShared(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		const ours, other = transport.EtherTypeDefault, transport.EtherType(0x88b6)
		stranger, group := transport.MAC{2, 0, 0, 0, 9, 9}, transport.MAC{3, 0, 0, 0, 0, 1}
		a, b := open(0, settings{}), open(1, settings{})
		all := open(1, settings{etherType: transport.EtherTypeAny})
		promiscuous := open(1, settings{promiscuous: true})
		tagged := transport.Frame{Dst: b.MAC(), EtherType: other, OptionalTag: transport.Tagged(transport.Tag{VID: 5})}
		send(t, a,
			transport.Frame{Dst: b.MAC(), EtherType: other}, tagged,
			transport.Frame{Dst: group, EtherType: ours},
			transport.Frame{Dst: stranger, EtherType: ours},
			transport.Frame{Dst: b.MAC(), EtherType: ours, Payload: []byte("last")})
		for _, c := range []struct {
			name string
			link transport.Link
			want []transport.MAC
		}{
			{"for our EtherType", b, []transport.MAC{b.MAC()}},
			{"for all", all, []transport.MAC{b.MAC(), b.MAC(), b.MAC()}},
			{"promiscuous", promiscuous, []transport.MAC{group, stranger, b.MAC()}},
		} {
			var got []transport.MAC
			for last := false; !last; {
				for _, f := range testbed.Receive(t, c.link, 1) {
					got = append(got, f.Dst)
					last = last || bytes.HasPrefix(f.Payload, []byte("last"))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("link %s: frames for %v, want %v", c.name, got, c.want)
			}
		}
	})
}

// A flood of frames for a group that was not joined, as another cluster on the segment sends,
// neither holds up Poll and Close nor makes a wanted frame among them come more than once.
func TestFloodOfUnwantedFrames(t *testing.T) {
	eachLink(t, func(t *testing.T, _ *testbed.Bed, open func(int, settings) transport.Link) {
		a, b := open(0, settings{}), open(1, settings{small: true})
		unwanted := transport.Frame{Dst: transport.MAC{3, 0, 0, 0, 0, 9}, EtherType: transport.EtherTypeDefault}
		flood := slices.Repeat([]transport.Frame{unwanted}, 20)
		wanted := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte("wanted")}
		within(t, "Poll", func() {
			for range 10 {
				send(t, a, flood...)
				send(t, a, wanted)
				send(t, a, flood...) // in all more frames than the ring has slots
				got := 0
				for polls := 0; polls < 4; polls++ { // a ring needs two, for the second half
					n, err := b.Poll(make([]transport.Frame, 64))
					if err != nil {
						t.Error(err)
					}
					got += n
				}
				if got != 1 {
					t.Errorf("the wanted frame came %d times", got)
				}
			}
			for _, frames := range [][]transport.Frame{
				slices.Concat(flood, flood),                            // slots are given back at once: there is room for the next
				slices.Concat([]transport.Frame{wanted}, flood, flood), // the first slot is not read again
			} {
				want := len(frames) - 2*len(flood)
				send(t, a, frames...)
				if n, err := b.Poll(make([]transport.Frame, 64)); n != want || err != nil {
					t.Errorf("Poll: %d frames, %v; want %d", n, err, want)
				}
			}
			send(t, a, slices.Repeat(flood, 10)...)
			if n, err := b.Poll(make([]transport.Frame, 64)); n != 0 || err != nil {
				t.Errorf("Poll: %d frames, %v", n, err)
			}
		})
		send(t, a, slices.Repeat(flood, 10)...)
		within(t, "Close", func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// within fails the test if f takes longer than patience.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
	}
}
