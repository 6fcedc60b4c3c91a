package managertest

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// Proxy passes connections on to a manager, and cuts them.
type Proxy struct {
	Path  string
	l     net.Listener
	mu    sync.Mutex
	conns []net.Conn
	all   sync.WaitGroup
}

// NewProxy starts a proxy of the manager at a socket, until the test ends.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	p := &Proxy{Path: filepath.Join(t.TempDir(), "proxy")}
	var err error
	if p.l, err = net.Listen("unix", p.Path); err != nil {
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
	t.Cleanup(func() { _ = p.l.Close(); p.Cut(); p.all.Wait() })
	return p
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}
