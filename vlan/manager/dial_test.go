package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
)

// The manager dies and comes back: meanwhile the table is in force, and afterwards the manager
// knows again what the program wants.
func TestManagerIsLostAndComesBack(t *testing.T) {
	dir := t.TempDir()
	n := managertest.Start(t, 0, managertest.RoundRobin(t, 4, 3), dir)
	events := make(chan manager.Event, 10)
	s := n.Dial(t, manager.Dialer{OnEvent: func(e manager.Event) { events <- e }})
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		t.Fatal(err)
	}
	version := s.Stats().Version
	n.Stop()
	if e := <-events; e.Kind != manager.EventLost || !errors.Is(e.Err, api.ErrUnreachable) {
		t.Errorf("event %v %v, want lost", e.Kind, e.Err)
	}
	if managertest.VID(s.Table(), 2) != 3 {
		t.Error("the table is not in force any more")
	}
	err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 2)
	if !errors.Is(err, api.ErrUnreachable) || !strings.Contains(err.Error(), "the session connects again; the table stays as it is") || strings.Count(err.Error(), "unreachable") != 1 {
		t.Errorf("SetRoute: %v", err)
	}
	if st := s.Stats(); st.Connected || st.Lost == nil {
		t.Errorf("%+v", st)
	}
	n = managertest.Start(t, 0, nil, dir)
	if e := <-events; e.Kind != manager.EventBack {
		t.Errorf("event %v, want back", e.Kind)
	}
	routes, _ := n.Routes()
	if st := s.Stats(); routes[1].Tag.VID != 3 || managertest.VID(s.Table(), 2) != 3 || st.Version <= version || st.Reconnects != 1 {
		t.Errorf("manager's route %v, table's VID %d, %+v", routes[1], managertest.VID(s.Table(), 2), st)
	}
	if err := s.SetRoute(t.Context(), managertest.MAC(0), managertest.MAC(2), 2); err != nil {
		t.Error(err)
	}
}

// What is no manager, or another version of one, is said to be.
func TestDialWhatIsNoManagerOfThisVersion(t *testing.T) {
	answerer := func(answer string) string {
		path := filepath.Join(t.TempDir(), "sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = bufio.NewReader(c).ReadString('\n')
				_, _ = c.Write([]byte(answer))
				_ = c.Close()
			}
		}()
		t.Cleanup(func() { _ = l.Close(); <-done })
		return path
	}
	for _, c := range []struct {
		name, path, want string
		is               error
	}{
		{"nobody, and what to look at", filepath.Join(t.TempDir(), "none"), "no such file or directory (is a manager running there?)", api.ErrUnreachable},
		{"nobody", filepath.Join(t.TempDir(), "none"), "none: manager unreachable: dial unix", api.ErrUnreachable},
		{"another server", answerer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "HTTP status 404 (is it a rawlane manager, of this version?)", api.ErrProtocol},
		{"no HTTP", answerer("SSH-2.0-x\r\n"), "it does not answer as HTTP", api.ErrProtocol},
		{"gone at once", answerer(""), "EOF", api.ErrUnreachable},
		{"no JSON in the stream", answerer("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"), "not a manager of this protocol: invalid character", api.ErrProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := manager.Dial(t.Context(), "unix", c.path)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "session: manager unix:"+c.path) {
				t.Errorf("%v; want %v with %q", err, c.is, c.want)
			}
		})
	}
	const unknown = `{"error":{"code":"not_found","message":"GET /v1/table: no such request"}}`
	c := manager.NewClient(manager.Addr{Network: "unix", Address: answerer(fmt.Sprintf("HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(unknown), unknown))}, nil)
	defer c.Close()
	if _, err := c.Table(t.Context()); !errors.Is(err, api.ErrProtocol) || !strings.Contains(err.Error(), "GET /v1/table: no such request (is it older than this program, or is this its read-only address?)") {
		t.Errorf("a manager that does not know the request: %v", err)
	}
}

// A drain that is over as it begins is refused: most often the unit of its time was forgotten.
func TestDial_RefusesADrainThatCannotBe(t *testing.T) {
	for _, d := range []manager.Dialer{{DrainTimeout: -1}, {DrainTimeout: 5}} { // nanoseconds
		_, err := d.Dial(t.Context(), "unix", "/nowhere")
		if err == nil || !strings.Contains(err.Error(), "DrainTimeout") {
			t.Errorf("%v: %v", d.DrainTimeout, err)
		}
	}
}

// A manager that answers nothing is waited for until the context ends.
func TestDialEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := manager.Dial(ctx, "unix", path); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, api.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

func ExampleDial() {
	// In a program: manager.Dial(ctx, "unix", manager.DefaultSocket).
	socket, end := managertest.Example()
	defer end()
	ctx := context.Background()
	s, err := manager.Dial(ctx, "unix", socket)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() // takes the program's changes back

	router := s.Table() // for mcd.Config.Router
	show := func() { tag := router.Route(managertest.MAC(2)).Tag; fmt.Println("to node 2 by", tag) }
	show()
	if err := s.SetRoute(ctx, managertest.MAC(0), managertest.MAC(2), 3); err != nil {
		fmt.Println(err)
	}
	show()
	if err := s.Reset(ctx); err != nil {
		fmt.Println(err)
	}
	show()
	// Output:
	// to node 2 by VID 1 PCP 0
	// to node 2 by VID 3 PCP 0
	// to node 2 by VID 1 PCP 0
}
