package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

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
