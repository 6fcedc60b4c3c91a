package server

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
)

// systemd hears from the service as often as it wants to, and only if it does.
func TestWatchdog(t *testing.T) {
	dir, err := os.MkdirTemp("", "rl") // a test's own folder may have a longer name than a socket can
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "n")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_PID", "")
	for usec, want := range map[string]time.Duration{"": 0, "x": 0, "-1": 0, "20000": 20 * time.Millisecond} {
		t.Setenv("WATCHDOG_USEC", usec)
		if got := WatchdogInterval(); got != want {
			t.Errorf("WATCHDOG_USEC=%s: %v, want %v", usec, got, want)
		}
	}
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "1")
	if got := WatchdogInterval(); got != 0 {
		t.Errorf("another process's: %v", got)
	}
	s := testServer(t, "")
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Watchdog(ctx, 20*time.Millisecond); close(ended) }()
	for range 3 {
		b := make([]byte, 100)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := c.Read(b)
		if err != nil || string(b[:n]) != "WATCHDOG=1" {
			t.Fatalf("%q, %v", b[:n], err)
		}
	}
	cancel()
	<-ended
	s.Watchdog(t.Context(), 0) // returns
}

// A manager whose state file has another plan than the one given says that the file counts.
func TestAGivenPlanThatDoesNotCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	self, other := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	start := func(vids ...transport.VID) string {
		t.Helper()
		p, err := plan.RoundRobin([]transport.MAC{self, other}, vids)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		s, err := New(Config{MAC: self, Plan: p, State: file, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	const warning = "the state file has another plan than the one given"
	if said := start(1, 2); strings.Contains(said, warning) {
		t.Errorf("at first: %s", said)
	}
	if said := start(1, 2); strings.Contains(said, warning) {
		t.Errorf("with the same plan: %s", said)
	}
	if said := start(1, 2, 3); !strings.Contains(said, warning) {
		t.Errorf("with another plan: %q", said)
	}
}
