package server

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// endpoint opens an endpoint of cluster 1 on a link, for as long as the test.
func endpoint(t *testing.T, l transport.Link) *mcd.Endpoint {
	t.Helper()
	e, err := mcd.Open(mcd.Config{Cluster: 1}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (s *service) endpoint(t *testing.T) *mcd.Endpoint {
	t.Helper()
	return endpoint(t, openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})))
}

func mustOpenPort(t *testing.T, e *mcd.Endpoint, id mcd.PortID) *mcd.Port {
	t.Helper()
	p, err := e.OpenPort(id, mcd.PortOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mustBeBusy expects the port to be another program's, whose number the error tells: in these tests
// always this process.
func mustBeBusy(t *testing.T, e *mcd.Endpoint, id mcd.PortID) {
	t.Helper()
	_, err := e.OpenPort(id, mcd.PortOptions{})
	var busy *mcd.PortBusyError
	if !errors.As(err, &busy) || busy.Port != id || busy.PID != os.Getpid() {
		t.Errorf("port %d: %v, want it busy by process %d", id, err, os.Getpid())
	}
}

// mustBeSomebodys expects the port to be taken, and nobody to be named.
func mustBeSomebodys(t *testing.T, e *mcd.Endpoint, id mcd.PortID) {
	t.Helper()
	_, err := e.OpenPort(id, mcd.PortOptions{})
	var busy *mcd.PortBusyError
	if !errors.As(err, &busy) || busy.Port != id || busy.PID != 0 {
		t.Errorf("port %d: %v, want it busy, and nobody named", id, err)
	}
}

// A port is one program's: of those with grants, and of those with privilege of their own.
func TestPortsExclude(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports 1-4"))
	a, b, plain := s.endpoint(t), s.endpoint(t), endpoint(t, openPlain(t, bed, 0, "eth0"))
	p := mustOpenPort(t, a, 1)
	mustBeBusy(t, b, 1)
	inNamespace(t, bed, func() { mustBeBusy(t, plain, 1) })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	q := mustOpenPort(t, b, 1)
	mustBeBusy(t, a, 1)
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	inNamespace(t, bed, func() { p = mustOpenPort(t, plain, 1) })
	for range 5 { // more than its listener takes connections
		if _, err := a.OpenPort(1, mcd.PortOptions{}); !errors.Is(err, mcd.ErrPortBusy) {
			t.Errorf("port 1 of a program with privilege: %v, want it busy", err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpenPort(t, a, 1)
	if err := a.Close(); err != nil { // and with it the connection
		t.Fatal(err)
	}
	until(t, "free", func() bool { return s.links(me) == 1 })
	mustOpenPort(t, b, 1)
}

// inNamespace runs f on the thread of node 0: names of Unix sockets are a network namespace's.
func inNamespace(t *testing.T, bed *testbed.Bed, f func()) {
	t.Helper()
	_ = bed.Node(0).Do(func() error { f(); return nil })
}

// A program gets the ports that the rules give it, and no others.
func TestPortsAreTheRules(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports 1-4")+
		allowMe("interface eth0 cluster 2 ports any"))
	e := s.endpoint(t)
	_, err := e.OpenPort(5, mcd.PortOptions{})
	if !errors.Is(err, transport.ErrPermission) ||
		!strings.Contains(err.Error(), fmt.Sprintf("may not use port 5 of cluster 1 on eth0: no line of %s allows it", s.file)) ||
		!strings.Contains(err.Error(), " interface eth0 cluster 1 ports 5, and tell") {
		t.Errorf("port 5: %v", err)
	}
	mustOpenPort(t, e, 4)
	c := dial(t, s)
	for _, other := range []string{
		`"interface":"eth1","cluster":1`, `"interface":"eth0","cluster":1,"ether_type":34998`, `"interface":"eth0","cluster":3`,
	} {
		r := exchange(t, c, `{"do":"lock","port":3,`+other+`}`)
		if r == nil || r.Error == nil || r.Error.Cause != protocol.Denied {
			t.Errorf("%s: %+v", other, r)
		}
	}
	s.write(t, allowMe("interface any cluster any ports any"))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	r := exchange(t, c, `{"do":"lock","interface":"gone","cluster":1,"port":3}`)
	if r == nil || r.Error == nil || r.Error.Cause != protocol.NoInterface {
		t.Errorf("a port of no interface: %+v", r)
	}
	for port := range 256 { // all of a cluster, and none of another one
		r := exchange(t, c, fmt.Sprintf(`{"do":"lock","interface":"eth0","cluster":7,"port":%d}`, port))
		if r == nil || r.Error != nil {
			t.Fatalf("port %d: %+v", port, r)
		}
	}
	r = exchange(t, c, `{"do":"lock","interface":"eth0","cluster":8,"port":0}`)
	if r == nil || r.Error == nil || r.Error.Cause != protocol.Limited {
		t.Errorf("a port more: %+v", r)
	}
	if r := exchange(t, c, `{"do":"unlock","interface":"eth0","cluster":7,"port":9}`); r == nil || r.Error != nil {
		t.Errorf("unlock: %+v", r)
	}
	if r := exchange(t, c, `{"do":"lock","interface":"eth0","cluster":8,"port":0}`); r == nil || r.Error != nil {
		t.Errorf("a port in place of another one: %+v", r)
	}
}

// Locks outlive the service, and are found again by the next one; a link goes on without it, and
// locks more ports with its successor.
func TestPortsOutliveTheService(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports any"))
	a := s.endpoint(t)
	p := mustOpenPort(t, a, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.OpenPort(2, mcd.PortOptions{}); err == nil || !strings.Contains(err.Error(), "start the service") {
		t.Errorf("a port without the service: %v", err)
	}
	s.start(t, inNode{bed.Node(0)})
	b := s.endpoint(t)
	mustBeSomebodys(t, b, 1)
	mustOpenPort(t, a, 2)
	mustBeBusy(t, b, 2)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpenPort(t, b, 1)
}

// A port that a service has given away which is gone by now is taken, and the error names no process:
// that one's number would be the service's, or by now anybody's.
func TestPortOfAnEarlierService(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports any"))
	l := openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64}))
	var name *os.File
	inNamespace(t, bed, func() {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + transport.PortLockName(l.Segment(), 1, 9)})
		}
		if err != nil {
			t.Error(err)
		}
		name = os.NewFile(uintptr(fd), "lock")
	})
	defer name.Close()
	earlier := exec.Command("/proc/self/exe")
	earlier.Env, earlier.ExtraFiles = append(os.Environ(), listenHere+"=1"), []*os.File{name}
	if out, err := earlier.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mustBeSomebodys(t, endpoint(t, l), 9)
}

// A port whose program has hung up, and keeps the port's name, is taken until it closes that. The
// error names no process: the name's is the service, which is not to be ended for it.
func TestPortThatIsKept(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports any"))
	c := dial(t, s)
	if _, err := c.Write([]byte(`{"do":"lock","interface":"eth0","cluster":1,"port":9}`)); err != nil {
		t.Fatal(err)
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := c.ReadMsgUnix(make([]byte, protocol.MaxMessage), oob)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("the port's name: %d control messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	name := os.NewFile(uintptr(fds[0]), "name")
	defer name.Close()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "hung up", func() bool { return s.links(me) == 0 })
	e := s.endpoint(t)
	mustBeSomebodys(t, e, 9)
	if err := name.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpenPort(t, e, 9)
}

// A service that was started anew does not count what its predecessor has given: docs/without-root.md
// says so. What the sockets receive is fixed as before.
func TestARestartCountsAnew(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 7 ports 1")+fmt.Sprintf("limit user %d links 1 memory 1M\n", me))
	first := openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.start(t, inNode{bed.Node(0)})
	second := openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64}))
	peer := openPlain(t, bed, 1, "eth0")
	for _, port := range []byte{2, 1} {
		send(t, peer, transport.Frame{Dst: first.MAC(), EtherType: transport.EtherTypeDefault, Payload: message(1, port, 7, fmt.Sprint("for port ", port))})
	}
	for _, l := range []transport.Link{first, second} {
		if got := received(t, l, "for port 1"); len(got) != 1 {
			t.Errorf("received %q", got)
		}
	}
}

// squat has a stranger take the name of a port, for as long as the test.
func squat(t *testing.T, bed *testbed.Bed, name string) {
	t.Helper()
	cmd := asNobody(exec.Command("/proc/self/exe"))
	cmd.Env = append(os.Environ(), takeName+"="+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := bed.Node(0).Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "taken\n" {
		t.Fatalf("the stranger said %q, %v", line, err)
	}
}

// A stranger who takes a port's name keeps nobody from the port that has the right to it; one that
// has the right itself, or by its group, does.
func TestPortsOfStrangers(t *testing.T) {
	needUsers(t)
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 1 ports any"))
	l := openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64}))
	squat(t, bed, transport.PortLockName(l.Segment(), 1, 9))
	squat(t, bed, transport.PortLockName(l.Segment(), 1, 10))
	squat(t, bed, transport.PortLockName(l.Segment(), 1, 11))
	e, other := endpoint(t, l), s.endpoint(t)
	for range 5 { // more than the stranger's listener takes connections
		p := mustOpenPort(t, e, 9)
		mustBeBusy(t, other, 9)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`msg="the name of a port is held by a user without the right to it: ignored"`, "holder_uid=65534"} {
		if !strings.Contains(s.journal.String(), want) {
			t.Errorf("no %q in\n%s", want, s.journal)
		}
	}
	s.write(t, allowMe("interface eth0 cluster 1 ports any")+"allow user 65534 interface eth0 cluster 1 ports 10\n"+
		"allow group 65534 interface eth0 cluster 1 ports 11\n")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, port := range []mcd.PortID{10, 11} {
			if _, err := e.OpenPort(port, mcd.PortOptions{}); !errors.Is(err, mcd.ErrPortBusy) {
				t.Errorf("port %d: %v, want it busy", port, err)
			}
		}
	}
	mustOpenPort(t, e, 9)
}

// database is a system that knows the groups of users, and counts who asks.
type database struct {
	kernel
	known map[uint32][]uint32
	err   error
	asked int
}

func (d *database) groups(uid uint32) ([]uint32, error) {
	d.asked++
	return d.known[uid], d.err
}

// Of a holder whose groups the kernel does not tell, those of its user count, and are asked for only
// where they can matter. Where they are not to be had the port is given to nobody.
func TestTrusts(t *testing.T) {
	cluster, broken := uint32(1), errors.New("no answer")
	const user = "allow user 7 interface eth0 cluster 1 ports 9\n"
	const group = "allow group 70 interface eth0 cluster 1 ports 9\n"
	for _, c := range []struct {
		rules  string
		who    rules.Peer
		err    error
		want   bool
		lookUp bool
	}{
		{user, rules.Peer{UID: 7}, broken, true, false},
		{user, rules.Peer{UID: 8}, broken, false, false},
		{user + group, rules.Peer{UID: 7}, broken, true, false},
		{user + group, rules.Peer{UID: 8}, nil, true, true},
		{group, rules.Peer{UID: 9}, nil, false, true},  // of other groups
		{group, rules.Peer{UID: 10}, nil, false, true}, // unknown
		{group, rules.Peer{UID: 8}, broken, false, true},
		{group, rules.Peer{UID: 8, Groups: []uint32{71}}, broken, false, false},
		{group, rules.Peer{UID: 9, Groups: []uint32{70}}, broken, true, false},
		{group, rules.Peer{}, broken, true, false},
		{"allow group 70 interface eth1 cluster 1 ports 9\n", rules.Peer{UID: 8}, broken, false, false},
		{"allow group 70 interface eth0 cluster 2 ports 9\n", rules.Peer{UID: 8}, nil, false, true},
	} {
		parsed, err := rules.Parse("grants", []byte(c.rules), rules.Lookup{})
		if err != nil {
			t.Fatal(err)
		}
		d := &database{known: map[uint32][]uint32{8: {80, 70}, 9: {90}}, err: c.err}
		s := &Server{system: d, lookups: make(chan struct{}, 1)}
		s.rules.Store(parsed)
		r := &protocol.Request{Interface: "eth0", EtherType: transport.EtherTypeDefault, Cluster: &cluster, Port: 9}
		got, err := s.trusts(&credentials{Peer: c.who}, r)
		if got != c.want || (d.asked == 1) != c.lookUp || len(s.lookups) != 0 {
			t.Errorf("%s%+v: %v after %d look-ups, want %v, %v", c.rules, c.who, got, d.asked, c.want, c.lookUp)
		}
		if failed := c.lookUp && c.err != nil; errors.Is(err, broken) != failed {
			t.Errorf("%s%+v: %v", c.rules, c.who, err)
		}
	}
}

// The owner of a name is told also of a socket that does not listen, and of none if there is none.
func TestSocketOwner(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	inNamespace(t, bed, func() {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@rawlane/name"}); err != nil {
			t.Error(err)
		}
		if _, who, err := lockName("rawlane/name"); err != nil || who == nil || who.UID != me {
			t.Errorf("the name that this user has bound: %v, %v", who, err)
		}
		if _, err := socketOwner("@rawlane/nam"); !errors.Is(err, errNoOwner) {
			t.Errorf("a name that nobody has: %v", err)
		}
	})
}

// A name that changes hands all the time is got, or has a holder.
func TestLockNameThatComesAndGoes(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	inNamespace(t, bed, func() {
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			t.Error(err)
			return
		}
		defer ns.Close()
		addr := &unix.SockaddrUnix{Name: "@rawlane/flicker"}
		end, ended := make(chan struct{}), make(chan struct{})
		started := make(chan error)
		go func() {
			defer close(ended)
			runtime.LockOSThread() // the thread ends with the goroutine
			started <- unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
			for {
				select {
				case <-end:
					return
				default:
				}
				if fd, err := listenAt(addr); err == nil {
					_ = unix.Close(fd)
				}
			}
		}()
		if err := <-started; err != nil {
			t.Error(err)
		}
		for range 2000 {
			fd, holder, err := lockName(addr.Name[1:])
			switch {
			case err != nil:
				t.Error(err)
			case holder == nil:
				_ = unix.Close(fd)
			}
		}
		close(end)
		<-ended
	})
}
