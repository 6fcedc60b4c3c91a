package manager_test

import (
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"

	"github.com/rawlane/rawlane/vlan/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mac is the address of node k.
func mac(k int) transport.MAC { return transport.MAC{0x02, 0, 0, 0, 0, byte(k + 1)} }

// cyclic is a plan of n nodes that use VIDs 1 to vids in turn.
func cyclic(t testing.TB, n, vids int) *plan.Plan {
	t.Helper()
	var macs []transport.MAC
	var list []transport.VID
	for k := range n {
		macs = append(macs, mac(k))
	}
	for v := range vids {
		list = append(list, transport.VID(v+1))
	}
	p, err := plan.RoundRobin(macs, list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// node is a manager under test.
type node struct {
	*manager.Server
	dir    string
	socket string
	client *manager.Client
}

// start starts the manager of node k, which has p as its plan and keeps its state in dir.
func start(t testing.TB, k int, p *plan.Plan, dir string) *node {
	t.Helper()
	return startAt(t, mac(k), p, dir)
}

// startAt is start for a node with another address.
func startAt(t testing.TB, m transport.MAC, p *plan.Plan, dir string) *node {
	t.Helper()
	s, err := manager.NewServer(manager.Config{MAC: m, Plan: p, State: filepath.Join(dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{Server: s, dir: dir, socket: socketOf(dir)}
	if _, err := s.Listen("unix", n.socket, nil); err != nil {
		t.Fatal(err)
	}
	n.client = manager.NewClient(manager.Addr{Network: "unix", Address: n.socket}, nil)
	t.Cleanup(n.stop)
	return n
}

func (n *node) stop() {
	n.client.Close()
	_ = n.Close()
}

// dial begins a session that is closed at the test's end.
func (n *node) dial(t testing.TB, d manager.Dialer) *manager.Session {
	t.Helper()
	s, err := d.Dial(t.Context(), "unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// vid is what a router sends with to node k; 0: untagged.
func vid(r vlan.Router, k int) transport.VID {
	tag := r.Route(mac(k)).Tag
	return tag.VID
}

// eventually waits until f holds, without a sleep's guess: f is asked again after each look of the other goroutines.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// socketOf returns where the manager with a state folder listens. A test's own folder may have a longer name than a socket can.
func socketOf(dir string) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("rl%08x", crc32.ChecksumIEEE([]byte(dir))))
}

// exampleManager starts a manager of node 0 of four, for examples.
func exampleManager() (socket string, end func()) {
	dir, err := os.MkdirTemp("", "rawlane-example-")
	if err != nil {
		panic(err)
	}
	var macs []transport.MAC
	for k := range 4 {
		macs = append(macs, mac(k))
	}
	plan, err := plan.RoundRobin(macs, []transport.VID{1, 2, 3})
	if err != nil {
		panic(err)
	}
	s, err := manager.NewServer(manager.Config{MAC: mac(0), Plan: plan})
	if err != nil {
		panic(err)
	}
	socket = filepath.Join(dir, "sock")
	if _, err := s.Listen("unix", socket, nil); err != nil {
		panic(err)
	}
	return socket, func() { _ = s.Close(); _ = os.RemoveAll(dir) }
}

// proxy passes connections on to a manager, and cuts them.
type proxy struct {
	path  string
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	p := &proxy{path: filepath.Join(t.TempDir(), "proxy")}
	var err error
	if p.l, err = net.Listen("unix", p.path); err != nil {
		t.Fatal(err)
	}
	p.all.Go(func() {
		for {
			in, err := p.l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			p.all.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			p.all.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() { _ = p.l.Close(); p.cut(); p.all.Wait() })
	return p
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// awaitRoutes waits until all sessions have their manager's routes.
func awaitRoutes(t testing.TB, n *node, sessions []*manager.Session) {
	t.Helper()
	eventually(t, "all have the manager's routes", func() bool {
		want, _ := n.Routes()
		for _, s := range sessions {
			if !slices.Equal(s.Table().Routes(), want) {
				return false
			}
		}
		return true
	})
}
