package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/internal/managertest"
	"github.com/rawlane/rawlane/vlan/manager/server"
)

// Close waits for the requests under way, and later ones are refused.
func TestCloseWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3)})
		if err != nil {
			t.Fatal(err)
		}
		body, end := io.Pipe()
		closed := false
		var all sync.WaitGroup
		all.Go(func() {
			s.Handle(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/reset", body))
		})
		synctest.Wait() // it reads its body
		all.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			closed = true
		})
		synctest.Wait()
		if closed {
			t.Error("it is closed, and a request is under way")
		}
		w := httptest.NewRecorder()
		s.Handle(w, httptest.NewRequest(http.MethodGet, "/v1/health", nil))
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"closed"`) {
			t.Errorf("a later request: %d %s", w.Code, w.Body)
		}
		_ = end.Close()
		all.Wait()
	})
}

// Close ends the session of a program that has sent a byte behind its request at once: package
// net/http does not notice the end of its connection.
func TestCloseEndsSessionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Config{MAC: managertest.MAC(0), Plan: managertest.RoundRobin(t, 4, 3)})
		if err != nil {
			t.Fatal(err)
		}
		l := make(pipes)
		go func() { _ = s.Serve(l) }() // until Close
		conn, other := net.Pipe()
		l <- other
		go func() { _, _ = io.Copy(io.Discard, conn) }() // until Close
		const body = `{"session":"s"}`
		if _, err := fmt.Fprintf(conn, "POST /v1/sessions HTTP/1.1\r\nHost: m\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := conn.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 0 { // virtual
			t.Errorf("Close took %v", took)
		}
	})
}
