package server_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// A start that fails leaves nothing where there was no state, and listens nowhere: the plan of the
// next start counts.
func TestNew_ThatFails(t *testing.T) {
	first := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = free.Close()
	tcp := server.Address{Network: "tcp", Address: free.Addr().String()}
	taken := server.Address{Network: "unix", Address: first.Socket}
	dir := t.TempDir()
	cfg := server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3), State: filepath.Join(dir, "state")}
	for want, change := range map[string]func(*server.Config){
		"manager: listen on unix":   func(c *server.Config) { c.Listen = []server.Address{tcp, taken} },
		"(that is for TCP without":  func(c *server.Config) { c.Listen = []server.Address{{Network: "unix", ReadOnly: true}} },
		"is not among its nodes":    func(c *server.Config) { c.MAC = managertest.MAC(98) },
		"want this node's":          func(c *server.Config) { c.MAC = managertest.MAC(0); c.MAC[0] = 1 },
		"listen on tcp 192.0.2.1:0": func(c *server.Config) { c.Listen = []server.Address{{Network: "tcp", Address: "192.0.2.1:0"}} },
	} {
		failing := cfg
		change(&failing)
		if _, err := server.New(failing); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Fatalf("%s: left %v, %v", want, left, err)
		}
	}
	cfg.Listen = []server.Address{tcp}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	routes, _ := s.Routes()
	if _, err := net.Dial("tcp", tcp.Address); err != nil || len(routes) == 0 {
		t.Errorf("%v, routes %v; want the plan's, and that it listens", err, routes)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left %v, want the state and its lock", left)
	}
}

// maxConns is the server's bound on connections.
const maxConns = 1024

// Connections beyond the bound wait until another ends.
func TestConnectionsAreLimited(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	var conns []net.Conn
	for range maxConns {
		c, err := net.Dial("unix", n.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	answered := make(chan error)
	go func() {
		_, err := n.Client.Health(t.Context())
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Errorf("one more was answered: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	_ = conns[0].Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A web page whose host name was made to stand for a loopback address is refused by its name.
func TestHostNameOnLoopback(t *testing.T) {
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), t.TempDir())
	addr, err := n.Listen("tcp", "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"": 200, "localhost:80": 200, "[::1]:80": 200, "page.example": 403, "page.example:80": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/v1/table", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.Close = host, true
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("host %q: %d, want %d", host, w.StatusCode, want)
		}
	}
}
