package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// pipes is a listener whose connections are in memory, for virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// A program that sends a byte behind its request and dies is noticed by the next heartbeat: package
// net/http reads no further.
func TestHeartbeatEndsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		l := make(pipes)
		go func() { _ = s.Serve(l) }() // until Close
		conn, other := net.Pipe()
		l <- other
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until conn is closed
		const body = `{"session":"s","pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}`
		_, err = fmt.Fprintf(conn, "POST /v1/sessions HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when string, vid transport.VID) {
			t.Helper()
			if r, _ := s.Routes(); r[0].Tag.VID != vid {
				t.Errorf("%s: VID %d, want %d", when, r[0].Tag.VID, vid)
			}
		}
		synctest.Wait()
		expect("begun", 3)
		confirm(s)
		time.Sleep(10 * time.Minute) // virtual
		expect("it reads what it is told", 3)
		if _, err := conn.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		time.Sleep(time.Minute) // virtual
		expect("ended", 1)
	})
}

// ask makes a request of session s.
func ask(s *server.Server, what, body string) {
	r := httptest.NewRequest(http.MethodPost, "/v1/sessions/s/"+what, strings.NewReader(body))
	s.Handle(httptest.NewRecorder(), r)
}

// confirm has session s confirm the routes in force.
func confirm(s *server.Server) {
	_, version := s.Routes()
	ask(s, "applied", fmt.Sprintf(`{"version":"%v"}`, version))
}

// A program whose socket takes what it is told, and that answers nothing, as it is stopped, loses its
// session after a minute; one that owes nothing does not, nor one that tells its counters when it is
// asked.
func TestProgramsThatAnswerNothing(t *testing.T) {
	for name, c := range map[string]struct {
		confirms, reports, lasts bool
	}{
		"stopped before its first answer": {},
		"it owes nothing":                 {confirms: true, lasts: true},
		"it cannot confirm, and is there": {reports: true, lasts: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := server.New(server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3)})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				l := make(pipes)
				go func() { _ = s.Serve(l) }() // until Close
				conn, other := net.Pipe()
				defer conn.Close()
				l <- other
				go func() { // until conn is closed
					for lines := bufio.NewScanner(conn); lines.Scan(); {
						if c.reports && strings.Contains(lines.Text(), `"report":`) {
							ask(s, "counters", `{"counts":[]}`)
						}
					}
				}()
				const body = `{"session":"s","pairs":[{"a":"02:00:00:00:00:01","b":"02:00:00:00:00:02","vid":3}]}`
				if _, err := fmt.Fprintf(conn, "POST /v1/sessions HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.confirms {
					confirm(s)
				}
				time.Sleep(time.Minute) // virtual
				synctest.Wait()
				if r, _ := s.Routes(); r[0].Tag.VID != 3 {
					t.Errorf("after a minute: VID %d, want 3", r[0].Tag.VID)
				}
				time.Sleep(9 * time.Minute) // virtual
				synctest.Wait()
				if r, _ := s.Routes(); (r[0].Tag.VID == 3) != c.lasts {
					t.Errorf("after ten: VID %d, and it lasts: %v", r[0].Tag.VID, c.lasts)
				}
			})
		})
	}
}
