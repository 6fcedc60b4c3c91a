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
	nic, err := askDriver(ifi)
	if err != nil {
		return 0, err
	}
	var s sender
	if err := s.open(ifi, nic, transport.MAC{2, 0, 0, 0, 0, 1}, true); err != nil {
		return 0, err
	}
	defer s.close()
	return unix.GetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS)
}
