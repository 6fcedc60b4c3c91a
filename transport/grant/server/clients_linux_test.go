package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
)

func dial(t *testing.T, s *service) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: s.socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends bytes and returns the reply, or nil if the service hangs up.
func exchange(t *testing.T, c *net.UnixConn, request string) *protocol.Reply {
	t.Helper()
	if _, err := c.Write([]byte(request)); err != nil {
		return nil
	}
	b := make([]byte, protocol.MaxMessage)
	n, err := c.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("no answer to %q", request)
	}
	if err != nil {
		return nil
	}
	r, err := protocol.ParseReply(b[:n])
	if err != nil {
		t.Fatalf("%q was answered by %q", request, b[:n])
	}
	return r
}

// Two thousand programs have a link each, at once; all are served, and forgotten.
func TestManyClients(t *testing.T) {
	clients := 2048
	if testing.Short() {
		clients = 100
	}
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+fmt.Sprintf("limit user %d links %d memory 1G\n", me, clients))
	before := testbed.Descriptors(t)
	grants := make([]*grant.Grant, clients)
	var running sync.WaitGroup
	for k := range grants {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
			defer cancel()
			g, err := grant.Open(ctx, s.socket, grant.Request{Interface: "eth0", Ring: true, Slots: 2})
			if err != nil {
				t.Errorf("client %d: %v", k, err)
				return
			}
			grants[k] = g
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	_, err := s.tryAsk(grant.Request{Interface: "eth0"})
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), fmt.Sprintf("has %d links, all that it may have", clients)) {
		t.Errorf("one more: %v", err)
	}
	for _, g := range grants {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	until(t, "forgotten", func() bool { return s.links(me) == 0 && testbed.Descriptors(t) <= before })
}

// A user has no more than its limit, in links and in memory of rings; what it gives back it may have
// again.
func TestLimits(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+fmt.Sprintf("limit user %d links 3 memory 256K\n", me))
	ring64 := grant.Request{Interface: "eth0", Ring: true, Slots: 64} // of 2 KiB
	a, b := s.ask(t, ring64), s.ask(t, ring64)
	_, err := s.tryAsk(ring64)
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "has rings of 262144 bytes, and with 131072 more would have over 262144") {
		t.Errorf("more memory than allowed: %v", err)
	}
	until(t, "the refused connection forgotten", func() bool { return s.links(me) == 2 })
	s.ask(t, grant.Request{Interface: "eth0"})
	_, err = s.tryAsk(grant.Request{Interface: "eth0"})
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "has 3 links, all that it may have") ||
		!strings.Contains(err.Error(), "links 6 memory 262144)") {
		t.Errorf("more links than allowed: %v", err)
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	until(t, "given back", func() bool { return s.links(me) == 1 })
	s.ask(t, ring64)
	s.ask(t, ring64)
}

// nameless is a system that may not be asked for a user's name.
type nameless struct {
	kernel
	t *testing.T
}

func (n nameless) name(uint32) string {
	n.t.Error("it asks for a user's name")
	return "somebody"
}

// Who has reached a limit is told so by what the rules call it, or else by number: to look a name up
// may take seconds, in which nobody else is accepted, or served.
func TestLimits_LookUpNoName(t *testing.T) {
	s := serve(t, nameless{t: t}, "allow user 7 interface eth0 cluster any ports any\nlimit user 7 links 1 memory 1K\n")
	who := &credentials{Peer: rules.Peer{UID: 7}}
	c := &conn{server: s.Server, who: who}
	if refusal := s.register(c); refusal != nil {
		t.Fatal(refusal)
	}
	defer s.leave(c)
	refusal := s.register(&conn{server: s.Server, who: who})
	if refusal == nil || !strings.Contains(refusal.Text, "limit user 7 links 2 memory 1024)") {
		t.Errorf("a second link: %v", refusal)
	}
	refusal = s.reserve(c, 1<<10+1)
	if refusal == nil || !strings.Contains(refusal.Text, "limit user 7 links 1 memory 1025)") {
		t.Errorf("a byte more: %v", refusal)
	}
}

// A line that helps is one to copy, with the name that the file has.
func TestLimits_LinesThatHelp(t *testing.T) {
	const allow = "allow user root interface eth0 cluster any ports any\n"
	who := &credentials{Peer: rules.Peer{UID: 0}}
	for _, c := range []struct{ rules, links, memory string }{
		{allow + "limit user root links 1 memory 1K\n", "limit user root links 2 memory 1024", "limit user root links 1 memory 1025"},
		{allow + "limit any links 1 memory 1K\n", "limit user root links 2 memory 1024", "limit user root links 1 memory 1025"},
		{allow + "limit user 0 links 1 memory 1K\n", "limit user 0 links 2 memory 1024", "limit user 0 links 1 memory 1025"},
		{allow + "limit total links 1 memory 1K\n", "limit total links 2 memory 1024", "limit total links 1 memory 1025"},
	} {
		s := serve(t, nameless{t: t}, c.rules)
		first := &conn{server: s.Server, who: who}
		if refusal := s.register(first); refusal != nil {
			t.Fatal(refusal)
		}
		refusal := s.register(&conn{server: s.Server, who: who})
		if refusal == nil || !strings.Contains(refusal.Text, s.cfg.Rules+": "+c.links+")") {
			t.Errorf("%sa second link: %v, want %s", c.rules, refusal, c.links)
		}
		refusal = s.reserve(first, 1<<10+1)
		if refusal == nil || !strings.Contains(refusal.Text, s.cfg.Rules+": "+c.memory+")") {
			t.Errorf("%sa byte more: %v, want %s", c.rules, refusal, c.memory)
		}
		s.leave(first)
	}
}

// More links than the service takes are given by no line.
func TestFull_NoLineGivesMore(t *testing.T) {
	s := serve(t, nameless{t: t}, allowMe(onAny))
	for text, want := range map[string]string{
		"":                                 "has 4096 connections, all that it takes (no line gives more)",
		"limit total links 4096 memory 1K": "has 4096 connections, all that it takes (no line gives more)",
		"limit total links 3000 memory 1K": "limit total links 4096 memory 1024)",
		"limit total links 0 memory 1K":    "has 0 connections, all that it takes (raise it in " + s.cfg.Rules + ": limit total links 1 memory 1024)",
	} {
		s.write(t, allowMe(onAny)+text+"\n")
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		if refusal := s.full(s.rules.Load()); !strings.Contains(refusal.Text, want) {
			t.Errorf("%s: %v, want %s", text, refusal, want)
		}
	}
}

// Users that no rule names, as many as they are, leave room for those that a rule names: also where
// all together may have fewer links than there may be strangers.
func TestStrangersLeaveRoom(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+"limit total links 2 memory 1M\n")
	admitted := 0
	for uid := range uint32(maxConns) {
		stranger := &conn{server: s.Server, who: &credentials{Peer: rules.Peer{UID: 1<<20 + uid}}}
		if s.register(stranger) == nil {
			admitted++
			defer s.leave(stranger)
		}
	}
	if admitted != maxStrangers {
		t.Errorf("%d strangers at a time, want %d", admitted, maxStrangers)
	}
	s.ask(t, grant.Request{Interface: "eth0"})
	s.ask(t, grant.Request{Interface: "eth0"})
	if _, err := s.tryAsk(grant.Request{Interface: "eth0"}); err == nil || !strings.Contains(err.Error(), "has 2 connections, all that it takes") {
		t.Errorf("one more than all may have: %v", err)
	}
}

// Who was a stranger when it connected, and is named by the rules since, has its link as one of all
// that there may be, and the place of a stranger no more.
func TestStrangerThatIsNamedLater(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	const total = "limit total links 1 memory 1M\n"
	s := serve(t, inNode{bed.Node(0)}, total)
	var clients []*net.UnixConn
	for range 2 {
		c := dial(t, s)
		if r := exchange(t, c, `{"do":"open","interface":"eth0"}`); r == nil || r.Error == nil || r.Error.Cause != protocol.Denied {
			t.Fatalf("of a stranger: %+v", r)
		}
		clients = append(clients, c)
	}
	s.write(t, allowMe(onAny)+total)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if r := exchange(t, clients[0], `{"do":"open","interface":"eth0"}`); r == nil || r.Open == nil {
		t.Errorf("the first link: %+v", r)
	}
	if r := exchange(t, clients[1], `{"do":"open","interface":"eth0"}`); r == nil || r.Error == nil || r.Error.Cause != protocol.Limited {
		t.Errorf("the second link of one: %+v", r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strangers != 1 {
		t.Errorf("%d strangers, want the second one", s.strangers)
	}
}

// The rules are read anew on request; wrong ones change nothing.
func TestReload(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, "allow user 4711 "+onAny+"\n")
	request := grant.Request{Interface: "eth0"}
	_, err := s.tryAsk(request)
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), fmt.Sprintf("(uid %d) may not use eth0", me)) {
		t.Errorf("no rule allows it: %v", err)
	}
	s.write(t, allowMe(onAny))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	g := s.ask(t, request)
	s.write(t, allowMe("interface"))
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), s.file+":1: ") {
		t.Errorf("wrong rules: %v", err)
	}
	s.ask(t, request)
	s.write(t, "")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tryAsk(request); !errors.Is(err, transport.ErrPermission) {
		t.Errorf("no rules: %v", err)
	}
	if l, err := packet.Open("", packet.Config{Grant: g}); err != nil {
		t.Errorf("what was granted before: %v", err)
	} else {
		_ = l.Close()
	}
}

// A connection that has nothing and asks for nothing ends; one that has a link or a lock does not.
func TestIdleConnections(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.idle = 500 * time.Millisecond
	s.start(t, inNode{bed.Node(0)})
	locked, granted := dial(t, s), dial(t, s)
	for c, request := range map[*net.UnixConn]string{
		locked:  `{"do":"lock","interface":"eth0","cluster":1,"port":3}`,
		granted: `{"do":"open","interface":"eth0"}`,
	} {
		if r := exchange(t, c, request); r == nil || r.Error != nil {
			t.Fatalf("%s: %+v", request, r)
		}
	}
	for range 2 { // the second one begins when what the others have is older than the first
		idle := dial(t, s)
		if n, err := idle.Read(make([]byte, 100)); !errors.Is(err, io.EOF) {
			t.Errorf("an idle connection: %d bytes, %v, want its end", n, err)
		}
	}
	for _, c := range []*net.UnixConn{locked, granted} {
		if r := exchange(t, c, `{"do":"lock","interface":"eth0","cluster":1,"port":4}`); r == nil {
			t.Error("a connection that has something has ended")
		}
	}
}

// What the rules do not give is denied, and the text is the line to add.
func TestDenied(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface eth0 cluster 5 ports any")+
		"allow group 4711 interface eth0 cluster any ports any ethertype 0x88b6\n")
	cluster := uint32(6)
	_, err := s.tryAsk(grant.Request{Interface: "eth0", Cluster: &cluster})
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "may not use cluster 6 on eth0") ||
		!strings.Contains(err.Error(), "interface eth0 cluster 6 ports any, and tell the service: systemctl reload rawlane-grant, or SIGHUP to") ||
		strings.Contains(err.Error(), "ethertype") || strings.Contains(err.Error(), "join group") {
		t.Errorf("another cluster: %v", err)
	}
	_, err = s.tryAsk(grant.Request{Interface: "eth0", EtherType: 0x88b6})
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "cluster any ports any ethertype 0x88b6, and tell") ||
		!strings.Contains(err.Error(), "; or join group 4711: usermod -aG 4711 ") {
		t.Errorf("another EtherType: %v", err)
	}
	for _, none := range []transport.EtherType{0x0800, 0x86dd, transport.EtherTypeVLAN, 0x05ff} {
		_, err = s.tryAsk(grant.Request{Interface: "eth0", EtherType: none})
		if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "no rule can allow it") ||
			strings.Contains(err.Error(), "add to it") {
			t.Errorf("EtherType %v, which no line can give: %v", none, err)
		}
	}
}

// Interfaces that are not there or down are told as by a link of one's own; one that is renamed or
// goes down later stays the link's.
func TestInterfacesChange(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface any cluster any ports any"))
	if _, err := s.tryAsk(grant.Request{Interface: "nonesuch"}); !errors.Is(err, transport.ErrNoInterface) {
		t.Errorf("no such interface: %v", err)
	}
	l := openRing(t, s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64}))
	rename(t, bed, 0, "eth0", "lan0")
	peer := openPlain(t, bed, 1, "eth0")
	send(t, peer, transport.Frame{Dst: l.MAC(), EtherType: transport.EtherTypeDefault, Payload: message(1, 0, 7, "renamed")})
	received(t, l, "renamed")
	if lock, err := l.LockPort(1, 1); err != nil {
		t.Errorf("a port of a renamed interface: %v", err)
	} else if err := lock.Close(); err != nil {
		t.Error(err)
	}
	rename(t, bed, 0, "lan0", "eth0")
	if err := bed.Node(0).SetUp(0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tryAsk(grant.Request{Interface: "eth0"}); !errors.Is(err, transport.ErrInterfaceDown) {
		t.Errorf("the interface is down: %v", err)
	}
	for err := error(nil); !errors.Is(err, transport.ErrInterfaceDown); {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err = l.Wait(ctx); errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("Wait does not tell that the interface is down")
		}
		cancel()
	}
}

// A grant is for one link, and of its kind.
func TestGrantIsForOneLink(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny))
	g := s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})
	l := openRing(t, g)
	if _, err := ring.Open("", ring.Config{Grant: g}); err == nil || !strings.Contains(err.Error(), "ask for another") {
		t.Errorf("a second link: %v", err)
	}
	_ = l.Close()
	for name, err := range map[string]error{
		"a ring without a ring": open2(ring.Open("", ring.Config{Grant: s.ask(t, grant.Request{Interface: "eth0"})})),
		"a packet with a ring":  open2(packet.Open("", packet.Config{Grant: s.ask(t, grant.Request{Interface: "eth0", Ring: true, Slots: 64})})),
		"promiscuous": open2(packet.Open("", packet.Config{
			Grant: s.ask(t, grant.Request{Interface: "eth0"}), Promiscuous: true})),
	} {
		if err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	until(t, "all given back", func() bool { return s.links(me) == 0 && len(packetSockets()) == 0 })
}

func open2[L any](_ L, err error) error { return err }

// What cannot be started says why.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(text string, mode os.FileMode) string {
		name := dir + "/" + fmt.Sprint(mode)
		if err := errors.Join(os.WriteFile(name, []byte(text), mode), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct{ name, file, socket, want string }{
		{"no rules", dir + "/none", dir + "/s", "no such file"},
		{"rules of anybody", write("", 0o666), dir + "/s", "chmod o-w"},
		{"wrong rules", write("deny", 0o600), dir + "/s", `:1: "deny": want allow or limit`},
		{"a socket that is a file", write("", 0o644), dir + "/" + fmt.Sprint(os.FileMode(0o644)), "is no socket"},
	} {
		if _, err := Open(c.socket, Config{Rules: c.file}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
