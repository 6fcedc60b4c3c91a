package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afpacket"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

// Links of granted sockets keep all promises of links.
func TestGrantedLinks(t *testing.T) {
	for _, kind := range []struct {
		name string
		open func(s *service) (transport.Link, error)
	}{
		{"ring", func(s *service) (transport.Link, error) {
			g, err := s.tryAsk(grant.Request{Interface: "eth0", Ring: true, Slots: ring.DefaultSlots})
			if err != nil {
				return nil, err
			}
			return ring.Open("", ring.Config{Grant: g})
		}},
		{"packet", func(s *service) (transport.Link, error) {
			g, err := s.tryAsk(grant.Request{Interface: "eth0"})
			if err != nil {
				return nil, err
			}
			return packet.Open("", packet.Config{Grant: g})
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{})
			a := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
			b := serve(t, inNode{bed.Node(1)}, allowMe(onAny))
			linktest.TestLink(t, func(t *testing.T) (x, y transport.Link) {
				var err error
				if x, err = kind.open(a); err != nil {
					t.Fatal(err)
				}
				if y, err = kind.open(b); err != nil {
					t.Fatal(err)
				}
				return x, y
			})
		})
	}
}

// A socket receives messages of its clusters to its ports and nothing else, whatever its owner does
// to it.
func TestGrantedSocketReceivesItsScopeAlone(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{NICs: 2})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 7,20-21 ports 0-9,30"))
	g := s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
	l := openRing(t, g)
	var fds []int
	for _, fd := range grantedSockets(t) {
		fds = append(fds, freeDescriptor(t, fd))
	}
	for _, fd := range fds {
		mustNotRemoveFilter(t, fd)
	}
	peer := openPlain(t, bed, 1, "eth0")
	sendAll := func() {
		for _, x := range []struct {
			etherType transport.EtherType
			payload   []byte
		}{
			{transport.EtherTypeDefault, message(1, 9, 8, "another cluster")},
			{transport.EtherTypeDefault, message(1, 9, 22, "behind a range of clusters")},
			{transport.EtherTypeDefault, message(1, 10, 7, "another port")},
			{transport.EtherTypeDefault, message(3, 31, 20, "another port, to all")},
			{0x88b6, message(1, 9, 7, "another EtherType")},
			{transport.EtherTypeDefault, message(4, 77, 8, "another cluster's probe")},
			{transport.EtherTypeDefault, message(4, 77, 7, "probe")},
			{transport.EtherTypeDefault, message(5, 77, 7, "reply")},
			{transport.EtherTypeDefault, message(1, 30, 21, "ours")},
			{transport.EtherTypeDefault, message(1, 0, 7, "last")},
		} {
			send(t, peer, transport.Frame{Dst: l.MAC(), EtherType: x.etherType, Payload: x.payload})
			send(t, peer, transport.Frame{Dst: transport.MAC{2, 9, 9, 9, 9, 9}, EtherType: x.etherType, Payload: x.payload})
		}
	}
	sendAll()
	want := []string{"probe", "reply", "ours", "last"}
	if got := received(t, l, "last"); !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	// Bound to another interface the socket receives nothing; bound back, the same as before.
	other := index(t, bed, 0, "eth1")
	for _, fd := range fds {
		if err := bindAll(fd, other); err != nil {
			t.Fatal(err)
		}
	}
	peer1 := openPlain(t, bed, 1, "eth1")
	witness := openPlain(t, bed, 0, "eth1")
	send(t, peer1, transport.Frame{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: message(3, 0, 7, "by eth1")})
	received(t, witness, "by eth1") // the kernel has offered it to all sockets by then
	for _, fd := range fds {
		if err := bindAll(fd, index(t, bed, 0, "eth0")); err != nil {
			t.Fatal(err)
		}
	}
	sendAll()
	if got := received(t, l, "last"); !slices.Equal(got, want) {
		t.Errorf("bound anew, received %q, want %q", got, want)
	}
	if n, _, err := unix.Recvfrom(fds[1], make([]byte, 2000), unix.MSG_DONTWAIT); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the sending socket received %d bytes, %v", n, err)
	}
}

// grantedSockets returns the sockets of the only grant, once the service, which is in this process,
// has closed its own descriptors of them: receiving, sending.
func grantedSockets(t *testing.T) (fds []int) {
	t.Helper()
	until(t, "two packet sockets", func() bool { fds = packetSockets(); return len(fds) == 2 })
	return fds
}

// packetSockets returns this process's packet sockets, in the order of their numbers.
func packetSockets() (fds []int) {
	for fd := 3; fd < 4096; fd++ {
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain == unix.AF_PACKET {
			fds = append(fds, fd)
		}
	}
	return fds
}

func mustNotRemoveFilter(t *testing.T, fd int) {
	t.Helper()
	all := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18}}
	for what, err := range map[string]error{
		"remove the filter": unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0),
		"unlock it":         unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 0),
		"replace it": unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: 1, Filter: &all[0]}),
	} {
		if !errors.Is(err, unix.EPERM) {
			t.Errorf("%s: %v, want EPERM", what, err)
		}
	}
}

func bindAll(fd, index int) error {
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: index})
}

func index(t *testing.T, bed *testbed.Bed, node int, ifname string) int {
	t.Helper()
	at, err := inNode{bed.Node(node)}.find(ifname)
	if err != nil {
		t.Fatal(err)
	}
	return at.Index
}

// openPlain opens a link with this process's own privilege, for as long as the test.
func openPlain(t *testing.T, bed *testbed.Bed, node int, ifname string) transport.Link {
	t.Helper()
	l, err := testbed.In(bed.Node(node), func() (*ring.Link, error) { return ring.Open(ifname, ring.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// The kernel's memory that a socket has is fixed: no ring can be replaced or added while the service
// serves the connection, and the memory is given back when the program hangs up.
func TestGrantedMemoryIsFixed(t *testing.T) {
	for _, slots := range []int{0, 64} {
		t.Run(fmt.Sprintf("%d slots", slots), func(t *testing.T) {
			bed := testbed.ForTest(t, testbed.Config{})
			s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
			g := s.ask(t, grant.Request{Interface: "eth0", Ring: slots > 0, Slots: slots})
			sockets := grantedSockets(t)
			large := unix.TpacketReq{Block_size: 1 << 20, Block_nr: 64, Frame_size: 2048, Frame_nr: 1 << 15}
			for _, fd := range sockets {
				for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
					for _, request := range []unix.TpacketReq{{}, large} {
						if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, option, &request); !errors.Is(err, unix.EBUSY) {
							t.Errorf("ring %d of %d blocks: %v, want EBUSY", option, request.Block_nr, err)
						}
					}
				}
			}
			kept := freeDescriptor(t, sockets[0])
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			until(t, "unmapped", func() bool {
				return unix.SetsockoptTpacketReq(kept, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq{}) == nil
			})
			for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING} {
				if err := unix.SetsockoptTpacketReq(kept, unix.SOL_PACKET, option, &unix.TpacketReq{}); err != nil {
					t.Errorf("the service still maps the ring: %v", err)
				}
			}
		})
	}
}

// A program that hangs up and keeps a socket has it counted on as its link, with its memory, until it
// closes it; so does one that passes it on. Its ports are free at once.
func TestSocketsThatOutliveTheConnectionCount(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+fmt.Sprintf("limit user %d links 1 memory 128K\n", me))
	g := s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
	for which := range 2 {
		kept, err := unix.FcntlInt(uintptr(grantedSockets(t)[which]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if kept >= 0 {
				_ = unix.Close(kept)
			}
		}()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		until(t, "noticed", func() bool {
			return strings.Count(s.journal.String(), "its sockets are still open: they count on") == which+1
		})
		_, err = s.tryAsk(grant.Request{Interface: "eth0"})
		if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "has 1 links, all that it may have") {
			t.Errorf("a second link: %v", err)
		}
		_ = unix.Close(kept)
		kept = -1
		until(t, "released", func() bool { return s.links(me) == 0 })
		g = s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
	}
}

// A grant is one link's: a second link is refused, and the first one, with its connection to the
// service, goes on; nor does a Close of the grant end it.
func TestAGrantIsOneLinks(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	g := s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
	l := openRing(t, g)
	if _, err := ring.Open("", ring.Config{Grant: g}); err == nil || !strings.Contains(err.Error(), "ask for another") {
		t.Errorf("a second ring: %v", err)
	}
	if _, err := packet.Open("", packet.Config{Grant: g}); err == nil {
		t.Error("a second link without a ring")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.LockPort(1, 1); err != nil {
		t.Errorf("the first link locks no port: %v", err)
	}
	if n := s.links(me); n != 1 {
		t.Errorf("%d links, want the first", n)
	}
}

// What docs/without-root.md says that the kernel does not hold: a granted socket joins the fanout
// group of any other program's on the interface, and takes its share of the group's frames.
func TestFanoutGroupsAreOpenToAll(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	s.ask(t, grant.Request{Interface: "eth0"})
	granted := grantedSockets(t)[0]
	const group = 7 // PACKET_FANOUT_HASH
	inNamespace(t, bed, func() {
		other, err := afpacket.OpenSocket()
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(other)
		at, err := kernel{}.find("eth0")
		if err == nil {
			err = bindAll(other, at.Index)
		}
		if err == nil {
			err = unix.SetsockoptInt(other, unix.SOL_PACKET, unix.PACKET_FANOUT, group)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if err := unix.SetsockoptInt(granted, unix.SOL_PACKET, unix.PACKET_FANOUT, group); err != nil {
			t.Errorf("%v: the kernel holds it by now: say so on the page", err)
		}
	})
}

// A link without a ring takes a page of the kernel's memory for each socket, and no more.
func TestMemoryOfALinkWithoutARing(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	inNamespace(t, bed, func() {
		a, err := kernel{}.find("eth0")
		if err != nil {
			t.Error(err)
			return
		}
		s, err := kernel{}.open(a, &protocol.Request{EtherType: transport.EtherTypeDefault}, []rules.Scope{{}})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.close()
		if len(s.mappings) != 2 {
			t.Errorf("%d rings, want one for each socket", len(s.mappings))
		}
		for _, m := range s.mappings {
			if m.size != uintptr(os.Getpagesize()) {
				t.Errorf("a ring of %d bytes, want a page", m.size)
			}
		}
	})
}

// A link whose second socket cannot be made leaves nothing.
func TestOpenWithoutDescriptors(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	inNamespace(t, bed, func() {
		a, err := kernel{}.find("eth0")
		if err != nil {
			t.Error(err)
			return
		}
		free, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_ = unix.Close(free)
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
			return
		}
		lower := limit
		lower.Cur = uint64(free) + 1 // one more
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lower); err != nil {
			t.Error(err)
			return
		}
		s, err := kernel{}.open(a, &protocol.Request{EtherType: transport.EtherTypeDefault}, []rules.Scope{{}})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
		if s != nil || !errors.Is(err, unix.EMFILE) {
			t.Errorf("%v, %v, want none for lack of descriptors", s, err)
		}
		if left := packetSockets(); len(left) != 0 {
			t.Errorf("sockets %v are left", left)
		}
	})
}

// The journal says who got what.
func TestJournal(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 7-9 ports 1,3-4"))
	cluster := uint32(8)
	g := s.ask(t, grant.Request{Interface: "eth0", Cluster: &cluster, Ring: true, Slots: 64})
	if g.Interface != "eth0" || g.MAC != testbed.MAC(0, 0) || g.MTU != 1500 || g.EtherType != transport.EtherTypeDefault {
		t.Errorf("granted %+v", g)
	}
	if _, err := s.tryAsk(grant.Request{Interface: "eth1"}); err == nil {
		t.Error("eth1 was granted")
	}
	_ = g.Close()
	until(t, "in the journal", func() bool { return strings.Contains(s.journal.String(), "msg=released") })
	for _, want := range []string{
		fmt.Sprintf("msg=granted uid=%d", me), fmt.Sprintf("pid=%d interface=eth0 ethertype=0x88b5 ", os.Getpid()),
		`cluster_ports=8:1,3-4 ring_bytes=131072`, "msg=refused", "cause=denied",
	} {
		if !strings.Contains(s.journal.String(), want) {
			t.Errorf("no %q in\n%s", want, s.journal)
		}
	}
}

// The filter, without its first three instructions, which look at the interface, against what the
// rules say of each message.
func TestFilterAgreesWithScopes(t *testing.T) {
	mac := transport.MAC{2, 0, 0, 0, 0, 1}
	scopes := []rules.Scope{
		{Cluster: rules.Range[uint32]{First: 5, Last: 5}, Ports: []rules.Range[uint8]{{First: 0, Last: 0}, {First: 7, Last: 9}}},
		{Cluster: rules.Range[uint32]{First: 6, Last: 1 << 31}, Ports: []rules.Range[uint8]{{First: 254, Last: 255}}},
		{Cluster: rules.Range[uint32]{First: 7, Last: 8}, Ports: manyPorts()},
		{Cluster: rules.Range[uint32]{First: 1<<32 - 1, Last: 1<<32 - 1}, Ports: []rules.Range[uint8]{{First: 0, Last: 255}}},
	}
	raw, err := newFilter(3, transport.EtherTypeDefault, mac, scopes)
	if err != nil {
		t.Fatal(err)
	}
	program, decoded := bpf.Disassemble(raw)
	if !decoded {
		t.Fatal("the filter does not disassemble")
	}
	vm, err := bpf.NewVM(program[3:])
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []uint32{0, 4, 5, 6, 7, 8, 9, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1} {
		for port := range 256 {
			for kind := range byte(16) {
				f := transport.Frame{Dst: mac, EtherType: transport.EtherTypeDefault, Payload: message(kind, byte(port), cluster, "x")}
				n, err := vm.Run(f.AppendTo(nil))
				want := slices.ContainsFunc(scopes, func(s rules.Scope) bool {
					return s.Cluster.Has(cluster) && (kind >= 4 || s.Has(cluster, uint8(port)))
				})
				if err != nil || (n > 0) != want {
					t.Fatalf("cluster %d, port %d, kind %d: %d, %v; want it taken: %v", cluster, port, kind, n, err, want)
				}
			}
		}
	}
	short := (&transport.Frame{Dst: mac, EtherType: transport.EtherTypeDefault, Payload: message(4, 0, 5, "")[:11]}).AppendTo(nil)
	if n, err := vm.Run(short); n != 0 || err != nil {
		t.Errorf("a frame without a whole header: %d, %v; want it dropped", n, err)
	}
}

// Rules that make a longer filter than the kernel takes are refused with what to do, and nothing is
// left.
func TestFilterIsTooLong(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	inNamespace(t, bed, func() {
		a, err := kernel{}.find("eth0")
		if err != nil {
			t.Error(err)
			return
		}
		scope := rules.Scope{Cluster: rules.Range[uint32]{First: 1, Last: 1}, Ports: manyPorts()}
		const want = "the rules for this user make a filter of 4118 instructions, and the kernel takes 4096 (ask for one cluster"
		_, err = kernel{}.open(a, &protocol.Request{EtherType: transport.EtherTypeDefault}, slices.Repeat([]rules.Scope{scope}, 72))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if left := packetSockets(); len(left) != 0 {
			t.Errorf("sockets %v are left", left)
		}
	})
	scope := rules.Scope{Ports: []rules.Range[uint8]{{First: 0, Last: 255}}} // of twelve instructions
	for scopes, fits := range map[int]bool{340: true, 341: false} {
		raw, err := newFilter(3, transport.EtherTypeDefault, transport.MAC{2}, slices.Repeat([]rules.Scope{scope}, scopes))
		if (err == nil) != fits {
			t.Errorf("%d scopes, %d instructions: %v", scopes, len(raw), err)
		}
	}
}

// manyPorts is as many ranges as a line may have.
func manyPorts() (ports []rules.Range[uint8]) {
	for i := range uint8(16) {
		ports = append(ports, rules.Range[uint8]{First: 16 * i, Last: 16*i + 7})
	}
	return ports
}
