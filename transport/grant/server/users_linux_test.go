package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/xdp"
)

// userProgram is the environment variable with the service's socket that makes this binary a user's
// program, which does what its input says, line by line.
const userProgram = "GRANT_TEST_USER_PROGRAM"

// runUserProgram carries out "link CLUSTER", "xdp", "endpoint", "port N", "window", "send TEXT",
// "receive" and "close", and answers each by a line: ok, what came, or the error.
func runUserProgram(socket string) {
	u := &userState{socket: socket}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := u.do(strings.Fields(lines.Text()))
		switch {
		case errors.Is(err, mcd.ErrPortBusy):
			answer = "busy"
		case errors.Is(err, transport.ErrPermission):
			answer = "denied: " + err.Error()
		case err != nil:
			answer = "failed: " + err.Error()
		}
		fmt.Println(answer)
	}
}

type userState struct {
	socket  string
	cluster uint32
	link    transport.Link
	ep      *mcd.Endpoint
}

func (u *userState) do(words []string) (string, error) {
	number := 0
	if len(words) > 1 {
		number, _ = strconv.Atoi(words[1]) // the test's own
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch words[0] {
	case "link":
		u.cluster = uint32(number)
		g, err := grant.Open(ctx, u.socket, grant.Request{Interface: "eth0", Ring: true, Slots: 64, Cluster: &u.cluster})
		if err == nil {
			u.link, err = ring.Open("", ring.Config{Grant: g})
		}
		return "ok", err
	case "xdp": // as any program: it need not know of grants
		l, err := xdp.Open("eth0", xdp.Config{Slots: 64})
		if err != nil {
			return "", err
		}
		u.link = l
		return fmt.Sprint("ok ", l.Mode()), nil
	case "send":
		_, err := u.link.Send([]transport.Frame{{
			Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: message(3, 0, 7, words[1]),
		}})
		return "ok", err
	case "close":
		return "ok", u.link.Close()
	case "receive":
		frames := make([]transport.Frame, 1)
		for {
			if n, err := u.link.Poll(frames); n > 0 || err != nil {
				return strings.TrimRight(string(frames[0].Payload[20:]), "\x00"), err
			}
			if err := u.link.Wait(ctx); err != nil {
				return "", err
			}
		}
	case "endpoint":
		ep, err := mcd.Open(mcd.Config{Cluster: mcd.ClusterID(u.cluster)}, u.link)
		u.ep = ep
		return "ok", err
	case "port":
		_, err := u.ep.OpenPort(mcd.PortID(number), mcd.PortOptions{})
		return "ok", err
	case "window":
		d, err := memfifo.Open(u.ep, memfifo.Config{})
		if err == nil {
			_, err = d.Register(1, make([]byte, 64), memfifo.Write)
		}
		return "ok", err
	}
	return "", errors.New("what?")
}

// program is a running program of a user's.
type program struct {
	t   *testing.T
	who uint32
	in  io.Writer
	out *bufio.Scanner
	cmd *exec.Cmd
}

// runAs starts a program of a user's, who is in no group, for as long as the test.
func runAs(t *testing.T, s *service, uid uint32) *program {
	t.Helper()
	return runBy(t, s, uid, (*exec.Cmd).Start)
}

// runBy is runAs, with how the program is started.
func runBy(t *testing.T, s *service, uid uint32, start func(*exec.Cmd) error) *program {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Env = append(os.Environ(), userProgram+"="+s.socket, grant.EnvSocket+"="+s.socket)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	return &program{t, uid, in, bufio.NewScanner(out), cmd}
}

// must has the program do something and expects the answer to begin so, and to contain the rest.
func (p *program) must(do, begins string, contains ...string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, do); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("user %d: %s: it has ended: %v", p.who, do, p.out.Err())
	}
	for _, want := range contains {
		if !strings.Contains(p.out.Text(), want) {
			p.t.Errorf("user %d: %s: %q, want %q in it", p.who, do, p.out.Text(), want)
		}
	}
	if !strings.HasPrefix(p.out.Text(), begins) {
		p.t.Errorf("user %d: %s: %q, want %s", p.who, do, p.out.Text(), begins)
	}
}

// serveUsers is serve with a socket that other users' programs reach.
func serveUsers(t *testing.T, sys system, text string) *service {
	t.Helper()
	needUsers(t)
	s := serve(t, sys, text)
	if err := os.Chmod(filepath.Dir(filepath.Dir(s.socket)), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

// Programs of two users without privilege, each with ports of its own: neither opens a port or a
// window of the other's, free or taken, or receives what is sent to it, and each has its own.
func TestUsersAreApart(t *testing.T) {
	const alice, bob, carol = 61001, 61002, 61003
	bed := testbed.ForTest(t, testbed.Config{})
	s := serveUsers(t, inNode{bed.Node(0)}, `
allow user 61001 interface eth0 cluster 7 ports 1-9,253
allow user 61002 interface eth0 cluster 7 ports 10-19
allow user 61002 interface eth0 cluster 8 ports any
`)
	a, b, other := runAs(t, s, alice), runAs(t, s, bob), runAs(t, s, bob)

	// Frames for a port of alice's, and then for one of bob's: each gets its own alone.
	a.must("link 7", "ok")
	b.must("link 7", "ok")
	peer := openPlain(t, bed, 1, "eth0")
	for _, x := range []struct {
		port byte
		text string
	}{{5, "for alice"}, {10, "for bob"}, {5, "for alice again"}, {10, "for bob again"}} {
		send(t, peer, transport.Frame{Dst: testbed.MAC(0, 0), EtherType: transport.EtherTypeDefault, Payload: message(1, x.port, 7, x.text)})
	}
	a.must("receive", "for alice")
	a.must("receive", "for alice again")
	b.must("receive", "for bob")
	b.must("receive", "for bob again")

	a.must("endpoint", "ok")
	b.must("endpoint", "ok")
	a.must("port 5", "ok")
	a.must("window", "ok")
	b.must("port 5", "denied: ", "may not use port 5 of cluster 7 on eth0", "(uid 61002)") // taken
	b.must("port 9", "denied: ", "may not use port 9 of cluster 7 on eth0")                // free
	b.must("window", "denied: ", "may not use port 253 of cluster 7 on eth0")
	a.must("port 10", "denied: ", "may not use port 10 of cluster 7 on eth0", "(uid 61001)")
	b.must("port 10", "ok")

	// Another cluster is bob's: the same numbers are other ports.
	a.must("link 8", "denied: ", "may not use cluster 8 on eth0")
	other.must("link 8", "ok")
	other.must("endpoint", "ok")
	other.must("port 5", "ok")
	other.must("window", "ok")

	// And who is in no rule has nothing.
	runAs(t, s, carol).must("link 7", "denied: ", "(uid 61003)")
}

// All users together have no more than the total, in connections and in memory of rings; what one
// gives back another may have.
func TestTotalLimits(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe(onAny)+"limit any links 100 memory 1G\nlimit total links 4 memory 256K\n")
	ring64 := grant.Request{Interface: "eth0", Ring: true, Slots: 64} // of 2 KiB
	stranger := &conn{server: s.Server, who: &credentials{Peer: rules.Peer{UID: me + 1}}}
	if refusal := s.register(stranger); refusal != nil { // another user, who has half of it
		t.Fatal(refusal)
	}
	if refusal := s.reserve(stranger, 128<<10); refusal != nil {
		t.Fatal(refusal)
	}
	g := s.ask(t, ring64)
	_, err := s.tryAsk(ring64)
	if !errors.Is(err, transport.ErrPermission) ||
		!strings.Contains(err.Error(), "the rings of all users have 262144 bytes, and with 131072 more would have over 262144") ||
		!strings.Contains(err.Error(), "limit total links 4 memory 393216)") {
		t.Errorf("more memory than all may have: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "given back", func() bool { return s.links(me) == 0 })
	s.ask(t, ring64)
	s.leave(stranger)
	s.ask(t, ring64)
	for range 2 {
		s.ask(t, grant.Request{Interface: "eth0"})
	}
	_, err = s.tryAsk(grant.Request{Interface: "eth0"})
	if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "the service has 4 connections, all that it takes") {
		t.Errorf("more connections than all may have: %v", err)
	}
}

// A port that was locked after a restart of the service is free once it is unlocked, though its
// interface has another name by then.
func TestUnlockAfterRename(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, allowMe("interface any cluster any ports any"))
	c := dial(t, s) // without a link, as that of a program whose service was started anew
	if r := exchange(t, c, `{"do":"lock","interface":"eth0","cluster":1,"port":3}`); r == nil || r.Error != nil {
		t.Fatalf("lock: %+v", r)
	}
	rename(t, bed, 0, "eth0", "lan0")
	if r := exchange(t, c, `{"do":"unlock","interface":"eth0","cluster":1,"port":3}`); r == nil || r.Error != nil {
		t.Fatalf("unlock: %+v", r)
	}
	s.mu.Lock()
	if len(s.locks) != 0 {
		t.Errorf("%d ports are locked", len(s.locks))
	}
	s.mu.Unlock()
	other := dial(t, s)
	if r := exchange(t, other, `{"do":"lock","interface":"lan0","cluster":1,"port":4}`); r == nil || r.Error != nil {
		t.Errorf("another port: %+v", r)
	}
	if r := exchange(t, c, `{"do":"unlock","interface":"lan0","cluster":1,"port":4}`); r == nil || r.Error != nil {
		t.Errorf("unlock what another one has: %+v", r)
	}
	if s.mu.Lock(); len(s.locks) != 1 {
		t.Errorf("%d ports are locked, want the other one's", len(s.locks))
	}
	s.mu.Unlock()
}

// Whoever asks without a right writes no more than some lines a minute into the journal, all such
// users together, and what is left out is counted; others' lines are written on.
func TestRefusalsAreLoggedSparingly(t *testing.T) {
	bed := testbed.ForTest(t, testbed.Config{})
	s := serve(t, inNode{bed.Node(0)}, "allow user 61001 "+onAny+"\n")
	refuse := func(uid uint32, stranger bool) {
		c := &conn{server: s.Server, who: &credentials{rules.Peer{UID: uid}, 7}, stranger: stranger}
		c.warn("refused", "cause", string(protocol.Denied))
	}
	for uid := range uint32(1000) {
		refuse(70000+uid, true)
	}
	if n := strings.Count(s.journal.String(), "msg=refused"); n != maxComplaints {
		t.Errorf("%d lines of strangers, want %d", n, maxComplaints)
	}
	refuse(61001, false)
	if !strings.Contains(s.journal.String(), "uid=61001 pid=7 cause=denied\n") {
		t.Error("no line of the user whom a rule names")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if want := fmt.Sprintf(`msg="more was refused" not_logged=%d`, 1000-maxComplaints); !strings.Contains(s.journal.String(), want) {
		t.Errorf("no %s at the end", want)
	}
}

// A user's lines in each window, and how many were left out before.
func TestComplaints(t *testing.T) {
	x, now := &complaints{most: maxComplaints}, time.Unix(1000, 0)
	spend := func(key uint32, n, want int) {
		t.Helper()
		written := 0
		for range n {
			if ok, _ := x.take(now, key); ok {
				written++
			}
		}
		if written != want {
			t.Errorf("%d of %d lines of %d are written, want %d", written, n, key, want)
		}
	}
	spend(1, maxComplaints+5, maxComplaints)
	spend(2, 1, 1) // another user has lines of its own
	now = now.Add(complaintWindow - 1)
	spend(1, 2, 0)
	now = now.Add(1)
	if ok, silent := x.take(now, 1); !ok || silent != 7 {
		t.Errorf("in the next window: %v, %d left out, want 7", ok, silent)
	}
	if ok, silent := x.take(now, 1); !ok || silent != 0 {
		t.Errorf("the second one: %v, %d left out, want 0", ok, silent)
	}
	// More users than are told apart share their lines, and leave room when they are quiet.
	for uid := range uint32(10 * maxComplainers) {
		_, _ = x.take(now, 1000+uid)
	}
	if n := len(x.all); n > maxComplainers+1 {
		t.Errorf("%d users are remembered", n)
	}
	spend(5000, maxComplaints, 0) // the others have used them up
	now = now.Add(complaintWindow)
	spend(5000, maxComplaints+1, maxComplaints)
	if n := len(x.all); n != 2 { // with those that share
		t.Errorf("%d users are remembered, want the latest alone", n-1)
	}
	var log strings.Builder
	x.close(slog.New(slog.NewTextHandler(&log, nil)))
	if !strings.Contains(log.String(), "not_logged=") {
		t.Errorf("at the end: %q", log.String())
	}
}
