package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// An interrupt of a benchmark with a process per node, in the middle of what nothing waits for, ends
// its capture as a whole file.
func TestCapture_OfAnInterruptedBenchmark(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "capture")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"rawlane", "bench", "rate", "--link", "shm", "--iters", "1000000000", "--capture", fifo}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if the test passes
	capture, err := os.Open(fifo)                // once node 0 has
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	some := make([]byte, 1<<20) // more than the nodes say before the measurement
	if _, err := io.ReadFull(capture, some); err != nil {
		t.Fatal(err, said.String())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(capture)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status says how
	if got := cmd.ProcessState.ExitCode(); got != 130 || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("status %d, said %q, want status 130", got, &said)
	}
	var errs bytes.Buffer
	status := cli.Execute(t.Context(), cli.NewRoot(verbs), []string{"dump", "-", "--payload", "0"},
		bytes.NewReader(append(some, rest...)), io.Discard, &errs)
	if status != cli.ExitDone {
		t.Errorf("dump of %d bytes: status %d, %s", len(some)+len(rest), status, &errs)
	}
}
