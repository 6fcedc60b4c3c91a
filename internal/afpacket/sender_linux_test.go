package afpacket

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// With several transmit queues frames keep their order only through the queueing discipline.
func TestSenderBypassesTheQdiscOnOneQueue(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	for queues, want := range map[int]int{1: 1, 2: 0} {
		var bypass int
		err := bed.Node(0).Do(func() error {
			attrs := netlink.LinkAttrs{Name: "mq0", NumTxQueues: queues, NumRxQueues: queues}
			veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "mq1"}
			if err := netlink.LinkAdd(veth); err != nil {
				return err
			}
			defer netlink.LinkDel(veth)
			ifi, err := net.InterfaceByName("mq0")
			if err != nil {
				return err
			}
			nic, err := AskDriver("mq0")
			if err != nil {
				return err
			}
			var s sender
			if err := s.open(ifi, nic, transport.MAC{2, 0, 0, 0, 0, 1}, Config{BypassQdisc: true}); err != nil {
				return err
			}
			defer s.close()
			bypass, err = unix.GetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if bypass != want {
			t.Errorf("%d transmit queues: PACKET_QDISC_BYPASS is %d, want %d", queues, bypass, want)
		}
	}
}
