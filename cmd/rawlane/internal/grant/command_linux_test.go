package grant

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli/clitest"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/grant/server"
)

var verbs = clitest.Verbs{NewCommand}

// write makes a file at once, as whoever reads it meanwhile gets the old one or the new.
func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(name+".new", []byte(text), 0o644), os.Rename(name+".new", name)); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCheck(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "grants"),
		"# who\nallow user 7 interface eth0 cluster 1,2 ports 9-9,1-3\nlimit any links 2 memory 1M\n")
	out, errs, status := verbs.Run(t, "grant", "--check", file)
	if want := "allow user 7 interface eth0 cluster 1-2 ports 1-3,9 ethertype 0x88b5\nlimit any links 2 memory 1048576\n"; out != want ||
		errs != "" || status != cli.ExitDone {
		t.Errorf("status %d, said %q, printed %q, want %q", status, errs, out, want)
	}
	for text, want := range map[string]string{"": "", "limit any links 2 memory 3\n": "limit any links 2 memory 3\n"} {
		write(t, file, text)
		out, _, status := verbs.Run(t, "grant", "--check", file)
		if want += "# nobody gets anything: no line allows it\n"; out != want || status != cli.ExitDone {
			t.Errorf("%q: status %d, printed %q, want %q", text, status, out, want)
		}
	}
	write(t, file, "\nallow everybody\n")
	if _, errs, status := verbs.Run(t, "grant", "--check", file); status != cli.ExitFailed ||
		!strings.Contains(errs, file+`:2: "everybody": want user NAME, group NAME or any`) {
		t.Errorf("status %d, said %q", status, errs)
	}
	if _, errs, status := verbs.Run(t, "grant", file); status != cli.ExitMisused || !strings.Contains(errs, "Usage") {
		t.Errorf("an argument: status %d, said %q", status, errs)
	}
	if _, errs, status := verbs.Run(t, "grant", "--rules", file+".none"); status != cli.ExitFailed || !strings.Contains(errs, "no such file or directory (write who may have which sockets into it") {
		t.Errorf("no rules: status %d, said %q", status, errs)
	}
}

// SIGHUP reads the rules anew; wrong ones are logged and change nothing.
func TestServeReloads(t *testing.T) {
	dir := t.TempDir()
	file, socket := write(t, filepath.Join(dir, "grants"), ""), filepath.Join(dir, "socket")
	var journal bytes.Buffer // read when serve has ended
	log := slog.New(slog.NewTextHandler(&journal, nil))
	s, err := server.Open(socket, server.Config{Rules: file, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	reload, ended := make(chan os.Signal), make(chan struct{})
	go func() { serve(ctx, s, reload, log); close(ended) }() // until stop
	asked := func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := grant.Open(ctx, socket, grant.Request{Interface: "none0"})
		if err == nil {
			t.Fatal("no interface was granted")
		}
		return err.Error()
	}
	if got := asked(); !strings.Contains(got, "may not use none0") {
		t.Errorf("without rules: %s", got)
	}
	write(t, file, "allow any interface none0 cluster any ports any\n")
	reload <- syscall.SIGHUP
	reload <- syscall.SIGHUP // is taken when the first one is done
	write(t, file, "deny\n")
	reload <- syscall.SIGHUP
	reload <- syscall.SIGHUP
	if got := asked(); !strings.Contains(got, "no such interface") {
		t.Errorf("with rules: %s", got)
	}
	stop()
	<-ended
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`msg="rules read"`, `msg="the old rules stay"`, `:1: \"deny\"`} {
		if !strings.Contains(journal.String(), want) {
			t.Errorf("no %s in %s", want, journal.String())
		}
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}
