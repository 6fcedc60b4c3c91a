package manager_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// A history holds the plans of large networks: its answer may be far longer than a request.
func TestALongAnswerIsReadToItsEnd(t *testing.T) {
	reason := strings.Repeat("x", api.MaxBody+1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"schema":1,"past":[{"reason":"` + reason + `","plan":null}]}`))
	}))
	defer s.Close()
	c := manager.NewClient(manager.Addr{Network: "tcp", Address: s.Listener.Addr().String()}, nil)
	defer c.Close()
	h, err := c.History(t.Context())
	if err != nil || len(h.Past) != 1 || len(h.Past[0].Reason) != len(reason) {
		t.Errorf("%d entries, %v", len(h.Past), err)
	}
}

// A manager's socket is found once: the program may go to another folder.
func TestClient_OfAnotherFolder(t *testing.T) {
	dir := testbed.SocketDir(t)
	t.Chdir(dir)
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"schema":1,"past":[]}`))
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	c := manager.NewClient(manager.Addr{Network: "unix", Address: "socket"}, nil)
	defer c.Close()
	t.Chdir(t.TempDir())
	if _, err := c.History(t.Context()); err != nil {
		t.Error(err)
	}
}

// So do a session's changes, which have a connection of their own.
func TestLane_OfAnotherFolder(t *testing.T) {
	dir := testbed.SocketDir(t)
	s, err := server.New(server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Listen("unix", filepath.Join(dir, "socket"), nil); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	session, err := manager.Dial(t.Context(), "unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	t.Chdir(t.TempDir())
	if err := session.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(1), 3); err != nil {
		t.Error(err)
	}
}
