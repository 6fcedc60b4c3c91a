// Package managertest starts managers for tests, and asks them as programs and curl do.
package managertest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/server"
	"github.com/rawlane/rawlane/vlan/plan"
)

// MAC is the address of node k.
func MAC(k int) transport.MAC { return transport.MAC{0x02, 0, 0, 0, 0, byte(k + 1)} }

// RoundRobin is a plan of n nodes that use VIDs 1 to vids in turn.
func RoundRobin(t testing.TB, n, vids int) *plan.Plan {
	t.Helper()
	p, err := roundRobin(n, vids)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func roundRobin(n, vids int) (*plan.Plan, error) {
	var macs []transport.MAC
	var list []transport.VID
	for k := range n {
		macs = append(macs, MAC(k))
	}
	for v := range vids {
		list = append(list, transport.VID(v+1))
	}
	return plan.RoundRobin(macs, list)
}

// Turned is RoundRobin with the defaults shifted by some VIDs, so that all pairs change.
func Turned(t testing.TB, n, vids, by int) *plan.Plan {
	t.Helper()
	p := RoundRobin(t, n, vids)
	for i := range p.Nodes {
		p.Nodes[i].VID = p.VIDs[(i+by)%vids]
	}
	return p
}

// Node is a manager under test.
type Node struct {
	*server.Server
	Dir    string // of its state
	Socket string
	Client *manager.Client
}

// Start starts the manager of node k, with p as its first plan and its state in dir, until the test
// ends.
func Start(t testing.TB, k int, p *plan.Plan, dir string) *Node {
	t.Helper()
	return StartAt(t, MAC(k), p, dir)
}

// StartAt is Start for a node with another address.
func StartAt(t testing.TB, m transport.MAC, p *plan.Plan, dir string) *Node {
	t.Helper()
	s, err := server.New(server.Config{MAC: m, Plan: p, State: filepath.Join(dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
	// A test's own folder may have a longer name than a socket can.
	n := &Node{Server: s, Dir: dir,
		Socket: filepath.Join(os.TempDir(), fmt.Sprintf("rl%08x", crc32.ChecksumIEEE([]byte(dir))))}
	if _, err := s.Listen("unix", n.Socket, nil); err != nil {
		t.Fatal(err)
	}
	n.Client = manager.NewClient(manager.Addr{Network: "unix", Address: n.Socket}, nil)
	t.Cleanup(n.Stop)
	return n
}

// StartAll starts the managers of n nodes.
func StartAll(t testing.TB, n, vids int) (all []*Node, clients []*manager.Client) {
	t.Helper()
	for k := range n {
		all = append(all, Start(t, k, RoundRobin(t, n, vids), t.TempDir()))
		clients = append(clients, all[k].Client)
	}
	return all, clients
}

// Stop ends the manager.
func (n *Node) Stop() {
	n.Client.Close()
	_ = n.Close()
}

// Dial begins a session that is closed at the test's end.
func (n *Node) Dial(t testing.TB, d manager.Dialer) *manager.Session {
	t.Helper()
	s, err := d.Dial(t.Context(), "unix", n.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Ask sends a request as curl does, with names and values of header fields in turn.
func (n *Node) Ask(
	t testing.TB, method, path, body string, header ...string,
) (status int, answer string, h http.Header) {
	t.Helper()
	w := n.Open(t, method, path, body, header...)
	defer func() { _ = w.Body.Close() }()
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(b), w.Header
}

// Open sends a request on a connection of its own and returns the answer, whose body the caller
// closes.
func (n *Node) Open(t testing.TB, method, path, body string, header ...string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.Socket)
		}}}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://manager"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Snapshot is the part of a table that a refused request must not change.
func (n *Node) Snapshot(t testing.TB) string {
	t.Helper()
	table, err := n.Client.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal([]any{table.Version, table.Plan, table.Pairs, table.Routes, table.Prepared})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// VID is the VID with which a router sends to node k; 0: untagged.
func VID(r vlan.Router, k int) transport.VID { return r.Route(MAC(k)).Tag.VID }

// Eventually waits until f holds.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// Example starts a manager of node 0 of four, for examples.
func Example() (socket string, end func()) {
	dir, err := os.MkdirTemp("", "rawlane-example-")
	if err != nil {
		panic(err)
	}
	p, err := roundRobin(4, 3)
	if err != nil {
		panic(err)
	}
	s, err := server.New(server.Config{MAC: MAC(0), Plan: p})
	if err != nil {
		panic(err)
	}
	socket = filepath.Join(dir, "sock")
	if _, err := s.Listen("unix", socket, nil); err != nil {
		panic(err)
	}
	return socket, func() { _ = s.Close(); _ = os.RemoveAll(dir) }
}
