package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/afxdp"
	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/linktest"
	"github.com/rawlane/rawlane/transport/xdp"
)

// needXDP skips the test where there is no XDP.
func needXDP(t *testing.T) {
	t.Helper()
	testbed.NeedXDP(t, func(ifname string) error { _, err := xdp.Probe(ifname); return err })
}

const onAnyXDP = onAny + " xdp yes"

// openXDP opens a granted link xdp, for as long as the test.
func openXDP(t *testing.T, s *service, r grant.Request) *xdp.Link {
	t.Helper()
	r.Interface, r.XDP = "eth0", true
	l, err := xdp.Open("", xdp.Config{Grant: s.ask(t, r)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// onInterface is what an interface of a node has of link xdp: its program's id, or 0, and whether the
// NIC takes VLAN tags off, which link xdp has it not do.
func onInterface(t *testing.T, n *testbed.Node) (program uint32, takesTagsOff bool) {
	t.Helper()
	err := n.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			program = max(x.ProgId, 1)
		}
		e, err := room.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		features, err := e.Features("eth0")
		takesTagsOff = features["rx-vlan-hw-parse"]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return program, takesTagsOff
}

// mustBeAsBefore expects an interface without a program, whose NIC is as it was.
func mustBeAsBefore(t *testing.T, n *testbed.Node) {
	t.Helper()
	if id, off := onInterface(t, n); id != 0 || !off {
		t.Errorf("program %d is on the interface, and the NIC takes tags off: %t", id, off)
	}
}

// Links xdp of granted sockets keep all promises of links, each opened right after the one before it
// was closed.
func TestGrantedLinksXDP(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	a := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP))
	b := serve(t, inNode{bed.Node(1)}, allowMe(onAnyXDP))
	linktest.TestLink(t, func(t *testing.T) (x, y transport.Link) {
		r := grant.Request{Slots: 256}
		return openXDP(t, a, r), openXDP(t, b, r)
	})
}

// A program of a user without any right opens link xdp, without a word of grants, and receives what
// its rules give to it; a link ring beside it has the rest. When it closes the link, or is killed,
// the interface is as before.
func TestUserHasXDP(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	s := serveUsers(t, inNode{bed.Node(0)}, "allow user 65534 interface eth0 cluster 7,9 ports 0-9 xdp yes\n"+allowMe(onAnyXDP))
	beside, peer := openPlain(t, bed, 0, "eth0"), openPlain(t, bed, 1, "eth0")
	to := func(port byte, cluster uint32, text string) {
		tag := transport.OptionalTag{Tagged: port%2 == 1, Tag: transport.Tag{VID: 5}}
		send(t, peer, transport.Frame{
			Dst: testbed.MAC(0, 0), EtherType: transport.EtherTypeDefault, OptionalTag: tag, Payload: message(1, port, cluster, text),
		})
	}
	for _, end := range []func(p *program){
		func(p *program) { p.must("close", "ok"); mustBeAsBefore(t, bed.Node(0)) },
		func(p *program) { _ = p.cmd.Process.Kill() },
	} {
		p := runBy(t, s, testbed.Nobody, bed.Node(0).Start)
		p.must("xdp", "ok generic")
		if id, off := onInterface(t, bed.Node(0)); id == 0 || off {
			t.Errorf("while the link is open: program %d; the NIC takes tags off: %t", id, off)
		}
		_, err := s.tryAsk(grant.Request{Interface: "eth0", XDP: true})
		var occupied *xdp.OccupiedError
		if !errors.As(err, &occupied) || occupied.PID != p.cmd.Process.Pid {
			t.Errorf("a second link: %v, want that process %d has it", err, p.cmd.Process.Pid)
		}
		to(10, 7, "another-port")
		to(1, 8, "another-cluster")
		to(2, 7, "ours")
		to(3, 9, "ours-too")
		to(11, 9, "last-of-the-others")
		p.must("receive", "ours")
		p.must("receive", "ours-too")
		if got := received(t, beside, "last-of-the-others"); !slices.Equal(got, []string{"another-port", "another-cluster", "last-of-the-others"}) {
			t.Errorf("the link beside it received %q", got)
		}
		p.must("send from-nobody", "ok")
		received(t, peer, "from-nobody")
		end(p)
		until(t, "as before", func() bool {
			id, off := onInterface(t, bed.Node(0))
			return id == 0 && off && s.links(testbed.Nobody) == 0
		})
	}
}

// Lines that do not say so allow no link xdp: the error names the line to add. Ring is allowed.
func TestXDPNeedsALineThatSaysSo(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+"allow group 61000 "+onAnyXDP+"\n")
	_, err := s.tryAsk(grant.Request{Interface: "eth0", XDP: true})
	if !errors.Is(err, transport.ErrPermission) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"may not use eth0 by EtherType 0x88b5 and link xdp: no line of", "interface eth0 cluster any ports any xdp yes, and tell", "join group 61000"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
}

// An interface has one link xdp: who asks for a second one hears who has it, whether the service
// granted it or not.
func TestXDPIsOccupied(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP))
	mustBeOccupied := func() {
		t.Helper()
		_, err := s.tryAsk(grant.Request{Interface: "eth0", XDP: true})
		var occupied *xdp.OccupiedError
		if !errors.As(err, &occupied) || occupied.PID != os.Getpid() || !occupied.Ours() ||
			!strings.Contains(err.Error(), fmt.Sprintf("rawlane_link, of process %d (end that one", os.Getpid())) {
			t.Errorf("%v", err)
		}
	}
	l := openXDP(t, s, grant.Request{})
	mustBeOccupied()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	mustBeAsBefore(t, bed.Node(0))
	l, err := testbed.In(bed.Node(0), func() (*xdp.Link, error) { return xdp.Open("eth0", xdp.Config{}) })
	if err != nil {
		t.Fatal(err)
	}
	mustBeOccupied()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	openXDP(t, s, grant.Request{})
	until(t, "forgotten", func() bool { return s.links(me) == 1 })
}

// A program that hangs up and keeps a socket of AF_XDP, or the one that tells of the interface, has
// no program on the interface any more, and its link and memory count until it closes it.
func TestXDPSocketsThatOutliveTheConnectionCount(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	limit := int64(afxdp.Bytes(1, 2048, 64))
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP)+fmt.Sprintf("limit user %d links 9 memory %d\n", me, limit))
	for k, domain := range []int{unix.AF_XDP, unix.AF_PACKET} {
		l := openXDP(t, s, grant.Request{Slots: 64})
		var fds []int
		until(t, "the link's alone", func() bool { fds = socketsOf(domain); return len(fds) == 1 })
		kept, err := unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		mustBeAsBefore(t, bed.Node(0))
		until(t, "noticed", func() bool {
			return strings.Count(s.journal.String(), "its sockets are still open: they count on") == k+1
		})
		_, err = s.tryAsk(grant.Request{Interface: "eth0", XDP: true, Slots: 64})
		if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), fmt.Sprintf("has rings of %d bytes, and with %d more", limit, limit)) {
			t.Errorf("more memory than allowed: %v", err)
		}
		_ = unix.Close(kept)
		until(t, "released", func() bool { return s.links(me) == 0 })
	}
}

// socketsOf returns this process's sockets of a domain.
func socketsOf(domain int) (fds []int) {
	for fd := 3; fd < 4096; fd++ {
		if got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && got == domain {
			fds = append(fds, fd)
		}
	}
	return fds
}

// A link outlives its service, both ways and in any mode; the program goes with the link then.
func TestXDPOutlivesTheService(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	for _, mode := range []xdp.Mode{xdp.Generic, xdp.Native} {
		s := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP))
		l, peer := openXDP(t, s, grant.Request{Mode: mode.String()}), openPlain(t, bed, 1, "eth0")
		if l.Mode() != mode {
			t.Errorf("%v, want %v", l.Mode(), mode)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		send(t, peer, transport.Frame{Dst: l.MAC(), EtherType: transport.EtherTypeDefault, Payload: message(1, 3, 7, "to the link")})
		received(t, l, "to the link")
		send(t, l, transport.Frame{Dst: peer.MAC(), EtherType: transport.EtherTypeDefault, Payload: message(1, 3, 7, "from it")})
		received(t, peer, "from it")
		if id, _ := onInterface(t, bed.Node(0)); id == 0 {
			t.Error("no program is on the interface")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if id, _ := onInterface(t, bed.Node(0)); id != 0 {
			t.Errorf("program %d is left on the interface", id)
		}
	}
}

// heldUp is a system that opens sockets when it is told to.
type heldUp struct {
	inNode
	opening, proceed chan struct{}
}

func (h heldUp) open(a *attachment, r *protocol.Request, scopes []rules.Scope) (*sockets, error) {
	close(h.opening)
	<-h.proceed
	return h.inNode.open(a, r, scopes)
}

// A link xdp that is opened as the service ends, and that its client does not get, leaves the
// interface as before.
func TestXDPThatNobodyGets(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	sys := heldUp{inNode{bed.Node(0)}, make(chan struct{}), make(chan struct{})}
	s := serve(t, sys, allowMe(onAnyXDP))
	asked, ended := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.tryAsk(grant.Request{Interface: "eth0", XDP: true}); asked <- err }()
	<-sys.opening
	go func() { ended <- s.Close() }()
	until(t, "ending", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.closed })
	close(sys.proceed)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := <-asked; err == nil || !strings.Contains(err.Error(), "the service hung up") {
		t.Errorf("%v", err)
	}
	mustBeAsBefore(t, bed.Node(0))
}

// A link whose interface is removed ends as any: there is nothing to undo.
func TestGrantedXDPInterfaceRemoved(t *testing.T) {
	needXDP(t)
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAnyXDP))
	l := openXDP(t, s, grant.Request{Slots: 64})
	if err := bed.Node(0).Remove(0); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); !errors.Is(err, transport.ErrInterfaceDown) && !errors.Is(err, transport.ErrNoInterface) {
		t.Errorf("Wait: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	until(t, "released", func() bool { return s.links(me) == 0 })
	if strings.Contains(s.journal.String(), "cannot undo") {
		t.Error(s.journal)
	}
}

// Who asks for an interface whose last link xdp is being undone waits until that is done.
func TestOccupyWaitsForTheLastOne(t *testing.T) {
	s := &Server{xdp: map[int]*conn{}}
	who := &credentials{pid: 7}
	first, second := &conn{server: s, who: who}, &conn{server: s, who: who}
	synctest.Test(t, func(t *testing.T) {
		if r := s.occupy(first, 3); r != nil {
			t.Fatal(r)
		}
		if r := s.occupy(second, 3); r == nil || r.Cause != protocol.Occupied || r.PID != 7 {
			t.Errorf("while the first one has it: %v", r)
		}
		if r := s.occupy(second, 4); r != nil {
			t.Errorf("another interface: %v", r)
		}
		s.vacate(second)
		s.hangUp(first)
		got := make(chan *protocol.RefusalError, 1)
		go func() { got <- s.occupy(second, 3) }()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatalf("before it is undone: %v", <-got)
		}
		s.vacate(first)
		if r := <-got; r != nil || s.xdp[3] != second {
			t.Errorf("once it is undone: %v", r)
		}
	})
}
