package manager_test

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// proxy passes connections on to a manager, and cuts them.
type proxy struct {
	path  string
	hold  atomic.Pointer[func()] // called before anything is passed on to the manager
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

// newProxy starts a proxy of the manager at a socket, until the test ends.
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
			p.all.Go(func() { _, _ = io.Copy(heldWriter{out, p}, in); _ = out.Close() })
			p.all.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
		}
	})
	t.Cleanup(func() { _ = p.l.Close(); p.cut(); p.all.Wait() })
	return p
}

// heldWriter is the manager's end of a connection.
type heldWriter struct {
	net.Conn
	proxy *proxy
}

func (w heldWriter) Write(b []byte) (int, error) {
	if hold := w.proxy.hold.Load(); hold != nil {
		(*hold)()
	}
	return w.Conn.Write(b)
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

// A broken connection does not make the counters count twice.
func TestCountersSurviveAReconnect(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	p := newProxy(t, n.Socket)
	d := manager.Dialer{}
	s, err := d.Dial(t.Context(), "unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Table().Counter(managertest.MAC(1)).Add(2, 200)
	total := func() (frames uint64) {
		for _, c := range n.Counters(t.Context()).Nodes {
			frames += c.Frames
		}
		return frames
	}
	if got := total(); got != 2 {
		t.Fatalf("%d frames, want 2", got)
	}
	p.cut()
	managertest.Eventually(t, "it is back", func() bool { return s.Stats().Reconnects == 1 && s.Stats().Connected })
	s.Table().Counter(managertest.MAC(1)).Add(1, 100)
	if got := total(); got != 3 {
		t.Errorf("%d frames after a reconnect, want 3", got)
	}
}
