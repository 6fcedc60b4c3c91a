package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// OnStep has f called before each step of a write of the state file; its error fails the step.
func (s *Server) OnStep(f func(step string) error) {
	s.change.Lock()
	defer s.change.Unlock()
	s.file.before = f
}

// Kill ends the manager as kill -9 does, as far as other processes can tell: connections end,
// nothing more is written, the lock is free. It may be called from a step.
func (s *Server) Kill() error {
	dead := errors.New("killed")
	s.file.before = func(string) error { return dead }
	_ = s.http.Close()
	s.lock.Close()
	return dead
}

// Serve serves requests on a listener of a test's own.
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// ListenPatiently is Listen with TLS, where a handshake may last for an hour.
func (s *Server) ListenPatiently(address string, c *tls.Config) (net.Addr, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	patient := func(l net.Listener) net.Listener { return s.newTLSListener(l, c, maxConns, time.Hour) }
	return s.serve(&listener{Listener: l, at: Address{Network: "tcp", TLS: c}, server: s.http, bounded: patient})
}

// Handle answers a request without a connection.
func (s *Server) Handle(w http.ResponseWriter, r *http.Request) { s.http.Handler.ServeHTTP(w, r) }

// Steps are those of a write, in their order.
var Steps = []string{"create", "write", "sync", "rename", "fsync"}

// SendRequest has a session make a request, and returns what is wrong with the routes during and
// after the session.
func SendRequest(p *plan.Plan, self transport.MAC, method, what string, body []byte) error {
	s, err := New(Config{MAC: self, Plan: p})
	if err != nil {
		return err
	}
	sess, err := s.join(&api.SessionStart{Session: "s"}, "", func() {}, nil)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, "/v1/sessions/s/"+what, bytes.NewReader(body))
	if err != nil {
		return nil // no program could send it
	}
	w := httptest.NewRecorder()
	s.Handle(w, r)
	routes, _ := s.Routes()
	for _, route := range routes {
		if !slices.Contains(p.VIDs, route.Tag.VID) {
			return fmt.Errorf("%d: a route by a VID that the plan lacks: %v", w.Code, route)
		}
	}
	s.leave(sess)
	if routes, _ := s.Routes(); !slices.Equal(routes, p.Routes(0)) {
		return fmt.Errorf("routes %v, want the plan's: %v", routes, p.Routes(0))
	}
	return s.Close()
}
