package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// endless starts the command with work for hours, and returns when it has printed the first lines.
func endless(t *testing.T) (cmd *exec.Cmd, out io.Closer, said *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(self)
	cmd.Args = []string{"rawlane", "bench", "latency", "--iters", "100", "--size", "4" + strings.Repeat(",4", 20_000)}
	said = new(bytes.Buffer)
	cmd.Stderr = said
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if the test passes
	lines := bufio.NewScanner(pipe)
	for range 3 {
		if !lines.Scan() {
			t.Fatalf("it ended: %v, said %s", lines.Err(), said)
		}
	}
	return cmd, pipe, said
}

// A command that a signal ends exits as a shell tells it: 128 and the signal's number.
func TestSignal_ExitStatus(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		status int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		cmd, out, said := endless(t)
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out.(io.Reader)) // until it ends
		_ = cmd.Wait()                              // the status says how
		if got := cmd.ProcessState.ExitCode(); got != c.status || said.String() != "rawlane bench latency: interrupted\n" {
			t.Errorf("%v: status %d, said %q, want status %d", c.signal, got, said, c.status)
		}
	}
}

// A signal that comes twice, as an interrupt at a terminal does in a user namespace, leaves the
// command the time to tidy up: the second one is caught as well.
func TestSignal_ComesTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(t.Context())
		came, stopped := make(chan os.Signal, 1), make(chan time.Time, 1)
		start := time.Now()
		go awaitSignal(came, end, func() { stopped <- time.Now() })
		came <- os.Interrupt
		<-ctx.Done()
		var cause *cli.SignalError
		if !errors.As(context.Cause(ctx), &cause) || cause.Signal != syscall.SIGINT || time.Since(start) != 0 {
			t.Errorf("%v after %v", context.Cause(ctx), time.Since(start))
		}
		if d := (<-stopped).Sub(start); d != cli.SameSignal {
			t.Errorf("a second one ends the process %v after the first, want %v", d, cli.SameSignal)
		}
	})
}

// A reader that has had enough, as head has, ends the command without a word.
func TestBrokenPipe_IsQuiet(t *testing.T) {
	cmd, out, said := endless(t)
	_ = out.Close() // as head does
	_ = cmd.Wait()  // the status says how
	if got := cmd.ProcessState.ExitCode(); got != 141 || said.Len() != 0 {
		t.Errorf("status %d, said %q, want status 141 and nothing", got, said)
	}
}

// SIGHUP does not end the verbs that read files again by it, from their first moment on: they hear it
// once they run. It ends the others, but where it was ignored before, as under nohup.
func TestSignals(t *testing.T) {
	for line, dropped := range map[string]bool{
		"manager --failover": true, "--x manager": true, "grant --rules f": true,
		"route log --manager manager": false, "key grant": false, "": false,
	} {
		ends, deaf := signals(strings.Fields(line))
		if got := slices.Contains(deaf, os.Signal(syscall.SIGHUP)); got != dropped {
			t.Errorf("%q: dropped is %v", line, got)
		}
		if got := slices.Contains(ends, os.Signal(syscall.SIGHUP)); got != (!dropped && !signal.Ignored(syscall.SIGHUP)) {
			t.Errorf("%q: an end is %v", line, got)
		}
	}
}
