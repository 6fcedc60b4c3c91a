package manager

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"

	"github.com/rawlane/rawlane/vlan/plan"
)

// OnStep has f called before each step of a write of the state file; its error fails the step.
func (s *Server) OnStep(f func(step string) error) { s.file.step = f }

// Kill ends the manager as kill -9 does, as far as anybody outside can tell: connections end, nothing more is written, the lock is
// free. It may be called from a step.
func (s *Server) Kill() error {
	dead := errors.New("killed")
	s.file.step = func(string) error { return dead }
	s.mu.Lock()
	for conn := range s.sessions.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	_ = s.http.Close()
	s.unlock()
	return dead
}

// Steps are those of a write, in their order.
var Steps = []string{"create", "write", "sync", "rename", "settle"}

// Codes are those of refusals.
func Codes() (names []string) {
	for _, c := range codes {
		names = append(names, c.name)
	}
	return append(names, "not_found", "browser", "internal")
}

// Troubles has a control meet an error, or none, in each of some periods, and returns what it tells.
func Troubles(errs ...error) string {
	var told strings.Builder
	c := &controlLoop{options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	for _, err := range errs {
		c.trouble(err)
	}
	return told.String()
}

// HearLines has a manager hear a session's lines, and returns what is wrong with its routes afterwards.
func HearLines(plan *plan.Plan, self transport.MAC, lines []byte) error {
	s, err := NewServer(Config{MAC: self, Plan: plan})
	if err != nil {
		return err
	}
	program, conn := net.Pipe()
	sub := &subscriber{s: s, conn: conn, wake: make(chan struct{}, 1), pending: make(map[transport.MAC]vlan.Route)}
	go func() {
		_, _ = program.Write(append([]byte(`{"id":1,"start":{"session":"s"}}`+"\n"), lines...))
		_ = program.Close()
	}()
	var heard sync.WaitGroup
	heard.Go(func() { _, _ = io.Copy(io.Discard, program) })
	sub.serve(bufio.NewReader(conn))
	_ = conn.Close()
	heard.Wait()
	routes, _ := s.Routes()
	if want := plan.Routes(0); !slices.Equal(routes, want) {
		return fmt.Errorf("routes %v, want the plan's: %v", routes, want)
	}
	return s.Close()
}
