package xdp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/xdp"
)

// raw sends bytes as they are from eth0 of a node.
func raw(t *testing.T, n *testbed.Node, frames ...[]byte) {
	t.Helper()
	err := n.Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range frames {
			if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: ifi.Index}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rawFrame is the bytes of a frame to a station: what, of 2 bytes each, is between the addresses and
// the payload.
func rawFrame(to transport.MAC, payload string, what ...uint16) []byte {
	b := append(to[:], 2, 0, 0, 0, 0, 0x99)
	for _, w := range what {
		b = binary.BigEndian.AppendUint16(b, w)
	}
	return append(append(b, payload...), make([]byte, 64)...)
}

// Tags of 802.1Q and of 802.1ad come off, and TPID tells them apart; frames of others pass by.
func TestTags(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		t.Run(mode.String(), func(t *testing.T) {
			bed, _, b := pair(t, xdp.Config{Mode: mode})
			to := b.MAC()
			const ours = uint16(transport.EtherTypeDefault)
			raw(t, bed.Node(0),
				rawFrame(to, "other type", 0x88b6),
				rawFrame(to, "other type behind a tag", 0x8100, 5, 0x88b6),
				rawFrame(to, "behind two tags", 0x88a8, 200, 0x8100, 100, ours),
				rawFrame(transport.MAC{2, 0, 0, 0, 9, 9}, "for another", ours),
				rawFrame(to, "plain", ours),
				rawFrame(to, "service tag", 0x88a8, 0x6007, ours),
				rawFrame(to, "priority tag", 0x8100, 0xe000, ours),
				rawFrame(transport.Broadcast, "to all", 0x8100, 0xfffe, ours))
			want := []struct {
				payload string
				tag     transport.OptionalTag
				tpid    transport.EtherType
			}{
				{"plain", transport.Untagged, 0},
				{"service tag", transport.Tagged(transport.Tag{VID: 7, PCP: 3}), transport.EtherTypeQinQ},
				{"priority tag", transport.Tagged(transport.Tag{PCP: 7}), transport.EtherTypeVLAN},
				{"to all", transport.Tagged(transport.Tag{VID: 4094, PCP: 7, DEI: true}), transport.EtherTypeVLAN},
			}
			frames, got := make([]transport.Frame, 1), 0
			for end := time.Now().Add(patience); got < len(want); {
				n, err := b.Poll(frames)
				if err != nil || time.Now().After(end) {
					t.Fatalf("%d frames: %v", got, err)
				}
				if n == 0 {
					runtime.Gosched()
					continue
				}
				f, w := frames[0], want[got]
				if !bytes.HasPrefix(f.Payload, []byte(w.payload)) || f.OptionalTag != w.tag || b.TPID(0) != w.tpid ||
					f.EtherType != transport.EtherTypeDefault {
					t.Errorf("frame %d: %.20q, %v, TPID %v; want %q, %v, %v", got, f.Payload, f.OptionalTag, b.TPID(0), w.payload, w.tag, w.tpid)
				}
				got++
			}
		})
	}
}

// Frames of others reach the kernel: UDP on the same interfaces goes on, and so do packet sockets of
// other EtherTypes, with a tag as it was.
func TestOthersFramesReachTheKernel(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		t.Run(mode.String(), func(t *testing.T) {
			bed, a, b := pair(t, xdp.Config{Mode: mode})
			listen := func(node int) net.PacketConn {
				c, err := testbed.In(bed.Node(node), func() (net.PacketConn, error) {
					return net.ListenPacket("udp4", net.JoinHostPort(testbed.IP(node, 0).String(), "7000"))
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				return c
			}
			other, err := testbed.In(bed.Node(1), func() (*ring.Link, error) {
				return ring.Open("eth0", ring.Config{EtherType: 0x88b6})
			})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			ua, ub, buf := listen(0), listen(1), make([]byte, 1500)
			for i := range 50 {
				send(t, a, frameTo(b, "ours"))
				if _, err := ua.WriteTo([]byte{byte(i)}, ub.LocalAddr()); err != nil {
					t.Fatal(err)
				}
				if n, _, err := ub.ReadFrom(buf); err != nil || n != 1 || buf[0] != byte(i) {
					t.Fatalf("datagram %d: %x, %v", i, buf[:n], err)
				}
				if got := testbed.Receive(t, b, 1); !bytes.HasPrefix(got[0].Payload, []byte("ours")) {
					t.Fatalf("%q", got[0].Payload)
				}
			}
			raw(t, bed.Node(0), rawFrame(b.MAC(), "theirs", 0x8100, 0x2005, 0x88b6))
			if f := testbed.Receive(t, other, 1)[0]; f.Tag != (transport.Tag{VID: 5, PCP: 1}) || !bytes.HasPrefix(f.Payload, []byte("theirs")) {
				t.Errorf("another EtherType: %v %.20q", f.OptionalTag, f.Payload)
			}
		})
	}
}

// A promiscuous link gets frames for others, and for groups that were not joined.
func TestPromiscuous(t *testing.T) {
	bed, a, b := pair(t, xdp.Config{Promiscuous: true})
	if b.Promiscuous() != "asked for" {
		t.Errorf("Promiscuous: %q", b.Promiscuous())
	}
	stranger, group := transport.MAC{2, 0, 0, 0, 9, 9}, transport.MAC{3, 0, 0, 0, 0, 1}
	want := []transport.MAC{stranger, group, b.MAC()}
	for _, to := range want {
		send(t, a, transport.Frame{Dst: to, EtherType: transport.EtherTypeDefault})
	}
	raw(t, bed.Node(0), rawFrame(b.MAC(), "", 0x88b6)) // and no other EtherType
	var got []transport.MAC
	for _, f := range testbed.Receive(t, b, len(want)) {
		got = append(got, f.Dst)
	}
	if !slices.Equal(got, want) {
		t.Errorf("frames for %v, want %v", got, want)
	}
}

// More frames than the link has memory for, sent at once, arrive in order, or Send says that it is
// busy; the peer polls meanwhile. Nothing of a chunk's former frame shows.
func TestManyFrames_InOrder(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		t.Run(mode.String(), func(t *testing.T) {
			_, a, b := pair(t, xdp.Config{Mode: mode})
			const total = 5000
			out := make([]transport.Frame, 200)
			in := make([]transport.Frame, 64)
			sent, next := 0, 0
			for end := time.Now().Add(patience); next < total; {
				for i := range out {
					payload := make([]byte, 8+(sent+i)%1400)
					binary.BigEndian.PutUint64(payload, uint64(sent+i))
					out[i] = transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: payload}
				}
				n, err := a.Send(out[:min(len(out), total-sent)])
				if err != nil && !errors.Is(err, transport.ErrBusy) {
					t.Fatal(err)
				}
				sent += n
				for got := 1; got > 0 || next < sent; {
					if got, err = b.Poll(in); err != nil || time.Now().After(end) {
						t.Fatalf("after %d of %d: %v", next, sent, err)
					}
					for _, f := range in[:got] {
						size := 8 + next%1400
						rest := f.Payload[min(size, len(f.Payload)):]
						if binary.BigEndian.Uint64(f.Payload) != uint64(next) || len(f.Payload) < size ||
							len(f.Payload) > max(size, 46) || !bytes.Equal(rest, make([]byte, len(rest))) {
							t.Fatalf("frame %d: %d bytes, number %d", next, len(f.Payload), binary.BigEndian.Uint64(f.Payload))
						}
						next++
					}
				}
			}
			if c := b.Counters(); c.RxFrames != total || c.RxDropped != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// addPairOfQueues joins two interfaces, out0 and in0, with two queues each way: the sender's queue
// is the receiver's.
func addPairOfQueues() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "out0", 2, 2
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "in0", PeerNumTxQueues: 2, PeerNumRxQueues: 2}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	for _, name := range []string{attrs.Name, pair.PeerName} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A link has a socket for each receive queue, and gets the frames of all.
func TestSeveralQueues(t *testing.T) {
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		t.Run(mode.String(), func(t *testing.T) {
			need(t)
			bed := testbed.ForTest(t, testbed.Config{})
			var in *xdp.Link
			err := bed.Node(0).Do(func() (err error) {
				if err := addPairOfQueues(); err != nil {
					return err
				}
				in, err = xdp.Open("in0", xdp.Config{Mode: mode})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if in.Queues() != 2 {
				t.Fatalf("%d queues, want 2", in.Queues())
			}
			for i := range 20 {
				queue := i % 2
				err := bed.Node(0).Do(func() error { return testbed.SendByQueue("out0", queue, frameTo(in, "queue")) })
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := testbed.Receive(t, in, 1); !bytes.HasPrefix(got[0].Payload, []byte("queue")) {
					t.Errorf("queue %d: %q", queue, got[0].Payload)
				}
			}
		})
	}
}

// Frames of a receive queue that the interface has got since the link was opened are counted as
// dropped: the kernel takes a socket for a queue that is there.
func TestQueueThatIsNew(t *testing.T) {
	need(t)
	bed := testbed.ForTest(t, testbed.Config{})
	var in *xdp.Link
	channels := func(ifname string, n uint32) error {
		e, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		return e.SetChannels(ifname, ethtool.Channels{RxCount: n, TxCount: n})
	}
	err := bed.Node(0).Do(func() (err error) {
		if err := errors.Join(addPairOfQueues(), channels("out0", 1), channels("in0", 1)); err != nil {
			return err
		}
		if in, err = xdp.Open("in0", xdp.Config{Mode: xdp.Native}); err != nil {
			return err
		}
		return errors.Join(channels("in0", 2), channels("out0", 2))
	})
	if in != nil {
		defer in.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	others := frameTo(in, "for another station")
	others.Dst = transport.MAC{2, 0, 0, 0, 0, 99}
	const each = 10
	for i := range 3 * each {
		f := []transport.Frame{frameTo(in, "queue"), frameTo(in, "queue"), others}[i%3]
		err := bed.Node(0).Do(func() error { return testbed.SendByQueue("out0", i%3, f) })
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testbed.Receive(t, in, each)
	for begun := time.Now(); in.Counters().RxDropped < each; runtime.Gosched() {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%+v, want %d dropped", in.Counters(), each)
		}
	}
	if err := in.Close(); err != nil || in.Counters().RxDropped != each {
		t.Errorf("closed: %+v, %v", in.Counters(), err)
	}
}

// Reading a view after Close is a fault of the program, but not its end.
func TestClose_UnderAReadersViews(t *testing.T) {
	_, a, b := pair(t, xdp.Config{})
	send(t, a, frameTo(b, "a view"))
	views := make([]transport.Frame, 1)
	for n := 0; n == 0; {
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, _ = b.Poll(views)
	}
	if !bytes.HasPrefix(views[0].Payload, []byte("a view")) {
		t.Errorf("received %q", views[0].Payload)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(views[0].Payload, "aview") {
		t.Error("the memory of a closed link still has frames in it")
	}
}
