package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/xdp"
)

// What a program has of link xdp it cannot change: its memory's size, the sockets' memory, rings and
// queue, the filter of the socket that tells of the interface.
func TestGrantedXDPIsFixed(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{NICs: 2})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 7 ports any xdp yes"))
	g := s.ask(t, grant.Request{Interface: "eth0", XDP: true, Slots: 64})
	var monitor, socket []int
	until(t, "the grant's sockets alone", func() bool {
		monitor, socket = socketsOf(unix.AF_PACKET), socketsOf(unix.AF_XDP)
		return len(monitor) == 1 && len(socket) == 1
	})
	mustNotRemoveFilter(t, monitor[0])
	for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
		if err := unix.SetsockoptTpacketReq(monitor[0], unix.SOL_PACKET, option, &unix.TpacketReq{}); !errors.Is(err, unix.EBUSY) {
			t.Errorf("ring %d: %v, want EBUSY", option, err)
		}
	}
	for _, option := range []int{unix.XDP_RX_RING, unix.XDP_TX_RING, unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING} {
		if err := unix.SetsockoptInt(socket[0], unix.SOL_XDP, option, 4096); !errors.Is(err, unix.EBUSY) {
			t.Errorf("ring %d: %v, want EBUSY", option, err)
		}
	}
	if err := unix.SetsockoptString(socket[0], unix.SOL_XDP, unix.XDP_UMEM_REG, string(make([]byte, 32))); !errors.Is(err, unix.EBUSY) {
		t.Errorf("other memory: %v, want EBUSY", err)
	}
	at := &unix.SockaddrXDP{Ifindex: uint32(index(t, bed, 0, "eth1")), Flags: unix.XDP_COPY}
	if err := unix.Bind(socket[0], at); !errors.Is(err, unix.EBUSY) {
		t.Errorf("bound anew: %v, want EBUSY", err)
	}
	memory := memoryFile(t)
	for _, size := range []int64{0, 1 << 30} {
		if err := unix.Ftruncate(memory, size); !errors.Is(err, unix.EPERM) {
			t.Errorf("memory of %d bytes: %v, want EPERM", size, err)
		}
	}
	if err := bindAll(monitor[0], index(t, bed, 0, "eth1")); err != nil {
		t.Fatal(err)
	}
	peer, witness := openPlain(t, bed, 1, "eth1"), openPlain(t, bed, 0, "eth1")
	send(t, peer, transport.Frame{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: message(3, 0, 7, "by eth1")})
	received(t, witness, "by eth1") // the kernel has offered it to all sockets by then
	if n, _, err := unix.Recvfrom(monitor[0], make([]byte, 2000), unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the socket that tells of the interface received %d bytes, %v", n, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// memoryFile returns the descriptor of this process's only memory for frames.
func memoryFile(t *testing.T) (fd int) {
	t.Helper()
	for fd := 3; fd < 4096; fd++ {
		if name, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd)); err == nil && strings.Contains(name, "memfd:rawlane-frames") {
			return fd
		}
	}
	t.Fatal("no memory for frames")
	return -1
}

// A link xdp has a socket for each receive queue of the interface.
func TestGrantedXDPOfSeveralQueues(t *testing.T) {
	needXDP(t)
	node := testbed.ForTest(t, testbed.Config{}).Node(0)
	err := node.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = "out0", 2, 2
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: "in0", PeerNumTxQueues: 2, PeerNumRxQueues: 2}
		return errors.Join(netlink.LinkAdd(veth), setUp("out0"), setUp("in0"))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, inNode{node}, allowMe("interface in0 cluster any ports any xdp yes"))
	g := s.ask(t, grant.Request{Interface: "in0", XDP: true})
	in, err := xdp.Open("", xdp.Config{Grant: g})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if in.Queues() != 2 {
		t.Fatalf("%d queues, want 2", in.Queues())
	}
	for queue := range 2 {
		err := node.Do(func() error {
			return testbed.SendByQueue("out0", queue, messageTo(in.MAC(), fmt.Sprint("by queue ", queue)))
		})
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		received(t, in, fmt.Sprint("by queue ", queue))
	}
}

// messageTo is a frame with a message.
func messageTo(to transport.MAC, text string) transport.Frame {
	return transport.Frame{Dst: to, Src: testbed.MAC(1, 1), EtherType: transport.EtherTypeDefault, Payload: message(1, 0, 1, text)}
}

func setUp(ifname string) error {
	l, err := netlink.LinkByName(ifname)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// A grant is for the link that it was asked for, of any kind.
func TestGrantsOfAnotherLink(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP))
	for want, open := range map[string]func() error{
		"xdp eth0: open: the grant is for link ring": func() error {
			_, err := xdp.Open("", xdp.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", Ring: true})})
			return err
		},
		"ring eth0: open: the grant is for link xdp": func() error {
			_, err := ring.Open("", ring.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", XDP: true})})
			return err
		},
		"packet eth0: open: the grant is for link xdp": func() error {
			_, err := packet.Open("", packet.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", XDP: true})})
			return err
		},
		"Config.Promiscuous: a granted socket": func() error {
			_, err := xdp.Open("", xdp.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", XDP: true}), Promiscuous: true})
			return err
		},
		"Config.Slots 1: out of range": func() error {
			_, err := xdp.Open("", xdp.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", XDP: true}), Slots: 1})
			return err
		},
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		mustBeAsBefore(t, bed.Node(0)) // it was given back
	}
}

// What cannot be granted is refused with the cure.
func TestXDPRefusals(t *testing.T) {
	request := &protocol.Request{Do: protocol.Open, Interface: "eth0", EtherType: transport.EtherTypeDefault, XDP: true}
	one := []rules.Scope{{}}
	narrow := &attachment{&afpacket.Interface{Name: "eth0", MTU: 1500, Driver: afpacket.Driver{RxQueues: protocol.MaxQueues}}}
	wide := &attachment{&afpacket.Interface{Name: "eth0", MTU: 1500, Driver: afpacket.Driver{RxQueues: protocol.MaxQueues + 1}}}
	long := &attachment{&afpacket.Interface{Name: "eth0", MTU: 9000, Driver: afpacket.Driver{RxQueues: 1}}}
	if n, err := narrow.bytes(request); err != nil || n < 64*1024*2048 {
		t.Errorf("as many queues as may be: %d bytes, %v", n, err)
	}
	_, tooWide := wide.bytes(request)
	_, tooLong := long.bytes(request)
	_, tooMany := narrow.open(request, slices.Repeat(one, 33))
	for want, err := range map[string]error{
		"the NIC has 65 receive queues, and link xdp by a grant takes 64 (ethtool -L eth0 combined 64": tooWide,
		"the interface's MTU is 9000, and AF_XDP's frames must fit a page":                             tooLong,
		"list 33 ranges of clusters, and link xdp takes 32 (ask for one cluster, or use link ring)":    tooMany,
		"for frames: no buffer space available (of the service: LimitMEMLOCK=infinity in its unit)": afxdp.Explain("open a socket",
			fmt.Errorf("register 9 bytes for frames: %w", unix.ENOBUFS)),
		"load the XDP program: operation not permitted (the service itself lacks CAP_NET_ADMIN or CAP_BPF: " +
			"AmbientCapabilities in its unit; or use link ring)": afxdp.Explain("load the XDP program", unix.EPERM),
	} {
		if r := failed(err); r.Cause != protocol.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
	// As before Linux 6.4, whose error package afxdp makes.
	if r := failed(fmt.Errorf("hand over: %w (needs Linux 6.4)", transport.ErrNotSupported)); r.Cause != protocol.NotSupported ||
		r.Text != "hand over: not supported here (needs Linux 6.4)" {
		t.Errorf("%+v", r)
	}
	got, err := programScopes([]rules.Scope{{
		Cluster: rules.Range[uint32]{First: 3, Last: 9}, Ports: []rules.Range[uint8]{{First: 0, Last: 1}, {First: 9, Last: 9}, {First: 250, Last: 255}},
	}})
	if err != nil || len(got) != 1 || got[0].First != 3 || got[0].Last != 9 || got[0].Ports != [32]uint8{0: 3, 1: 2, 31: 0xfc} {
		t.Errorf("%+v, %v", got, err)
	}
}
