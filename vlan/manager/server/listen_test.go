package server_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

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
