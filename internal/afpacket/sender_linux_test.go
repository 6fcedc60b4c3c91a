package afpacket

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// With several transmit queues frames keep their order only through the queueing discipline.
func TestSenderBypassesTheQdiscOnOneQueue(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	attrs := func(queues int) netlink.LinkAttrs {
		a := netlink.NewLinkAttrs()
		a.Name, a.NumTxQueues, a.NumRxQueues = "mq0", queues, queues
		return a
	}
	for _, c := range []struct {
		name string
		link netlink.Link
		want int
	}{
		{"one queue", &netlink.Veth{LinkAttrs: attrs(1), PeerName: "mq1"}, 1},
		{"two queues", &netlink.Veth{LinkAttrs: attrs(2), PeerName: "mq1"}, 0},
		{"one queue, of which the driver does not tell", &netlink.Macvlan{LinkAttrs: attrs(1)}, 1},
		{"four queues, of which the driver does not tell", &netlink.Macvlan{LinkAttrs: attrs(4)}, 0},
	} {
		var bypass int
		err := bed.Node(0).Do(func() (err error) {
			if lower, ok := c.link.(*netlink.Macvlan); ok {
				eth0, err := netlink.LinkByName("eth0")
				if err != nil {
					return err
				}
				lower.ParentIndex = eth0.Attrs().Index
			}
			if err := netlink.LinkAdd(c.link); err != nil {
				return err
			}
			defer netlink.LinkDel(c.link)
			bypass, err = bypassOf("mq0")
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if bypass != c.want {
			t.Errorf("%s: PACKET_QDISC_BYPASS is %d, want %d", c.name, bypass, c.want)
		}
	}
}

// bypassOf opens a sender that is to bypass the qdisc where it may, and returns whether it does.
func bypassOf(name string) (int, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	driver, err := askDriver(ifi)
	if err != nil {
		return 0, err
	}
	var s sender
	if err := s.open(&Interface{Index: ifi.Index, MTU: ifi.MTU, Driver: driver}, Config{BypassQdisc: true}); err != nil {
		return 0, err
	}
	defer s.close()
	return unix.GetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS)
}

// onEth0 opens a sender on node 0's interface, for as long as the test.
func onEth0(t *testing.T, bed *testbed.Bed, bypassQdisc bool) (s *sender) {
	t.Helper()
	s = new(sender)
	err := bed.Node(0).Do(func() error {
		ifi, err := FindInterface("eth0")
		if err != nil {
			return err
		}
		ifi.Driver = Driver{TxQueues: 1}
		return s.open(ifi, Config{BypassQdisc: bypassQdisc})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	return s
}

// Without a carrier frames are lost, as on an unplugged cable, and do not keep the sender busy for
// ever: whether the kernel says ENOBUFS, or EAGAIN as where the NIC keeps what it could not send. A
// look at the carrier is for one refusal in carrierEvery.
func TestSender_RefusedWithoutCarrier(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOBUFS, unix.EAGAIN} {
		bed := testbed.ForTest(t, testbed.Config{})
		s := onEth0(t, bed, true)
		refused := func() bool {
			n, err := s.refuse(3, errno)
			if n == 3 && err == nil {
				return false
			}
			if n != 0 || !errors.Is(err, transport.ErrBusy) {
				t.Fatalf("%v: %d, %v", errno, n, err)
			}
			return true
		}
		if !refused() {
			t.Errorf("%v with a carrier: the frames count as taken", errno)
		}
		if err := bed.Node(1).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); hasCarrier(s.fd, s.ifi.Index) && time.Now().Before(end); {
		}
		tries := 1
		for ; refused(); tries++ {
		}
		if tries != carrierEvery {
			t.Errorf("%v without a carrier: %d tries until the frames count as lost, want %d", errno, tries, carrierEvery)
		}
		if refused() {
			t.Errorf("%v without a carrier, and refused again", errno)
		}
	}
}

// A batch of the largest frames has room in the socket, however slowly the NIC takes them.
func TestSender_RoomForABatchOfLargeFrames(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{MTU: 9000})
	err := bed.Node(0).Do(func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		const rate = 20_000 // bytes a second
		return netlink.QdiscAdd(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: eth0.Attrs().Index, Parent: netlink.HANDLE_ROOT},
			Rate:       rate, Buffer: netlink.Xmittime(rate, 20_000), Limit: 100 << 20,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	s := onEth0(t, bed, false)
	frames := make([]transport.Frame, Batch)
	for i := range frames {
		frames[i] = transport.Frame{Dst: testbed.MAC(1, 0), EtherType: transport.EtherTypeDefault, Payload: make([]byte, 9000)}
	}
	if n, err := s.send(frames); n != Batch || err != nil {
		t.Errorf("%d of %d frames of 9,000 bytes: %v", n, Batch, err)
	}
}

// A sender keeps no payload alive that the caller has again, taken or refused.
func TestSender_KeepsNoPayload(t *testing.T) {
	s := onEth0(t, testbed.ForTest(t, testbed.Config{}), true)
	memory := make([]byte, transport.MaxHeaderLen+100)
	inPlace := transport.Frame{
		Dst: testbed.MAC(1, 0), EtherType: transport.EtherTypeDefault,
		Headroom: memory[:transport.MaxHeaderLen], Payload: memory[transport.MaxHeaderLen:],
	}
	tooLong := transport.Frame{Dst: testbed.MAC(1, 0), Payload: make([]byte, 2000)}
	if n, err := s.send([]transport.Frame{inPlace, inPlace, tooLong}); n != 2 || !errors.Is(err, transport.ErrTooLarge) {
		t.Fatalf("%d, %v", n, err)
	}
	for i := range s.vec {
		if s.vec[i].Base != nil {
			t.Errorf("frame %d of the last batch is still referred to", i)
		}
	}
}
