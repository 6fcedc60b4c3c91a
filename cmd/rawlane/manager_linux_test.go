package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// SIGHUP, by which a manager reads its certificates again, does not end one that is reading its plan.
func TestManager_HangupAtItsStart(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan")
	if err := unix.Mkfifo(plan, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = []string{"rawlane", "manager", "--plan", plan, "--mac", "02:00:00:00:00:01", "--socket", filepath.Join(dir, "socket")}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := os.OpenFile(plan, os.O_WRONLY, 0) // once the manager has opened it
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_, _ = text.WriteString("no plan") // a manager that has ended does not read it
	_ = text.Close()                   // likewise
	_ = cmd.Wait()                     // the status says how
	if got := cmd.ProcessState.ExitCode(); got != 1 || !strings.Contains(said.String(), plan) {
		t.Errorf("%v, said %q, want status 1, and what is wrong with the plan", cmd.ProcessState, &said)
	}
}
