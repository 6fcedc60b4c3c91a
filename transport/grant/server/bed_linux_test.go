package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/internal/protocol"
	"github.com/rawlane/rawlane/transport/grant/internal/rules"
	"github.com/rawlane/rawlane/transport/ring"
)

// takeName is the environment variable with a name that this binary is to take, and hold until its
// input ends.
const takeName = "GRANT_TEST_TAKE_NAME"

// listenHere is the environment variable that has this binary listen on its fourth descriptor, and
// end: the socket is then a dead process's.
const listenHere = "GRANT_TEST_LISTEN"

func TestMain(m *testing.M) {
	if name := os.Getenv(takeName); name != "" {
		if _, _, err := lockName(name); err != nil {
			panic(err)
		}
		fmt.Println("taken")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if os.Getenv(listenHere) != "" {
		if err := unix.Listen(3, 1); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	if socket := os.Getenv(userProgram); socket != "" {
		runUserProgram(socket)
		os.Exit(0)
	}
	os.Exit(testbed.Main(m))
}

// patience is how long what must happen may take.
const patience = 20 * time.Second

// inNode is the system in the namespace of a test bed's node.
type inNode struct{ node *testbed.Node }

func (n inNode) find(ifname string) (*attachment, error) {
	return testbed.In(n.node, func() (*attachment, error) { return kernel{}.find(ifname) })
}

// open works on a thread of its own, as the kernel takes its time for each socket.
func (n inNode) open(a *attachment, r *protocol.Request, scopes []rules.Scope) (s *sockets, err error) {
	ns, err := testbed.In(n.node, func() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") })
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err == nil {
			s, err = kernel{}.open(a, r, scopes)
		}
	}()
	<-done
	return s, err
}

func (n inNode) lock(name string) (fd int, holder *credentials, err error) {
	err = n.node.Do(func() (err error) { fd, holder, err = kernel{}.lock(name); return err })
	return fd, holder, err
}

func (n inNode) living() (map[uint64]bool, error) {
	return testbed.In(n.node, kernel{}.living)
}

func (inNode) name(uid uint32) string { return kernel{}.name(uid) }

func (inNode) groups(uid uint32) ([]uint32, error) { return kernel{}.groups(uid) }

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// service is a server under test, with its socket and its log.
type service struct {
	*Server
	socket, file string
	idle         time.Duration
	journal      *journal
}

// serve starts a service by rules, for as long as the test.
func serve(t *testing.T, sys system, text string) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{socket: filepath.Join(dir, "socket"), file: filepath.Join(dir, "grants"), journal: &journal{}}
	s.write(t, text)
	s.start(t, sys)
	return s
}

func (s *service) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(s.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *service) start(t *testing.T, sys system) {
	t.Helper()
	var err error
	s.Server, err = open(s.socket, Config{
		Rules: s.file, Logger: slog.New(slog.NewTextHandler(s.journal, nil)), idle: s.idle,
	}, sys)
	if err != nil {
		t.Fatal(err)
	}
	server := s.Server
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		if len(server.conns)+len(server.users)+len(server.locks)+len(server.left)+len(server.xdp)+server.strangers != 0 {
			t.Errorf("after Close: %d connections, %d users, %d locks", len(server.conns), len(server.users), len(server.locks))
		}
	})
}

// ask opens a grant, for as long as the test.
func (s *service) ask(t *testing.T, r grant.Request) *grant.Grant {
	t.Helper()
	g, err := s.tryAsk(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func (s *service) tryAsk(r grant.Request) (*grant.Grant, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return grant.Open(ctx, s.socket, r)
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("after %v: not yet %s", patience, what)
		}
	}
}

// links is how many links a user has.
func (s *service) links(uid uint32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[uid]; u != nil {
		return u.links
	}
	return 0
}

// me is the user that runs the test.
var me = uint32(os.Getuid())

// allowMe is rules for the user that runs the test.
func allowMe(rest string) string { return fmt.Sprintf("allow user %d %s\n", me, rest) }

const onAny = "interface eth0 cluster any ports any"

// openRing opens a granted ring.
func openRing(t *testing.T, g *grant.Grant) *ring.Link {
	t.Helper()
	l, err := ring.Open("", ring.Config{Grant: g})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// message is a frame's payload with the fields of the header that filters look at.
func message(kind, port byte, cluster uint32, text string) []byte {
	b := make([]byte, 20, 60)
	b[0], b[2] = 0x10|kind, port
	binary.BigEndian.PutUint32(b[8:], cluster)
	return append(b, text...)
}

// received polls until a frame with a text came, and returns the texts of all frames until then.
func received(t *testing.T, l transport.Link, last string) (texts []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	frames := make([]transport.Frame, 8)
	for {
		n, err := l.Poll(frames)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames[:n] {
			text := strings.TrimRight(string(f.Payload[20:]), "\x00")
			texts = append(texts, text)
			if text == last {
				return texts
			}
		}
		if n == 0 {
			if err := l.Wait(ctx); err != nil {
				t.Fatalf("%q came, and not %q: %v", texts, last, err)
			}
		}
	}
}

// send sends a payload from a link.
func send(t *testing.T, l transport.Link, f transport.Frame) {
	t.Helper()
	if n, err := l.Send([]transport.Frame{f}); n != 1 {
		t.Fatal(err)
	}
}

// asNobody has a process run by a user without any right.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

// needUsers skips a test where there is one user only, as in a user namespace.
func needUsers(t *testing.T) {
	t.Helper()
	if err := asNobody(exec.Command("/bin/true")).Run(); err != nil {
		b, _ := os.ReadFile("/proc/self/uid_map")
		if os.Geteuid() == 0 && strings.Contains(string(b), "4294967295") {
			t.Fatalf("no second user, though we are root: %v", err)
		}
		t.Skipf("no second user here: %v", err)
	}
}

// freeDescriptor makes a copy of a descriptor that outlives its owner, for as long as the test.
func freeDescriptor(t *testing.T, fd int) int {
	t.Helper()
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(copied) })
	return copied
}

// rename gives an interface of a node another name.
func rename(t *testing.T, bed *testbed.Bed, node int, from, to string) {
	t.Helper()
	err := bed.Node(node).Do(func() error {
		l, err := netlink.LinkByName(from)
		if err != nil {
			return err
		}
		return netlink.LinkSetName(l, to)
	})
	if err != nil {
		t.Fatal(err)
	}
}
