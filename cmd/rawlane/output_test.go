package main

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// fullDisk is a file that takes nothing.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "results", Err: syscall.ENOSPC}
}

// A verb whose results cannot be written has failed, and says why.
func TestOutput_ThatCannotBeWritten(t *testing.T) {
	for _, args := range []string{
		"version", "--version", "help", "--help", "help bench latency", "bench latency --help", "doctor", "ping 1 --count 1", "matrix --count 1 --rate 0", "matrix --count 1 --rate 0 --json",
		"matrix --check", "barrier show", "barrier trace --iters 1", "route vlans --topology vbft:2x2x2",
	} {
		var errs bytes.Buffer
		status := cli.Execute(t.Context(), cli.NewRoot(verbs), strings.Fields(args), strings.NewReader(""), fullDisk{}, &errs)
		if status != cli.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: status %d, said %q", args, status, &errs)
		}
	}
}

// dump says why it could not print, once, and does not take that for a fault of the capture.
func TestDump_ThatCannotBePrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.pcapng")
	if _, errs, status := Command(t, "bench", "latency", "--iters", "1", "--size", "4", "--capture", file); status != cli.ExitDone {
		t.Fatal(errs)
	}
	var errs bytes.Buffer
	status := cli.Execute(t.Context(), cli.NewRoot(verbs), []string{"dump", file}, strings.NewReader(""), fullDisk{}, &errs)
	if want := "rawlane dump: write results: no space left on device\n"; status != cli.ExitFailed || errs.String() != want {
		t.Errorf("status %d, said %q", status, &errs)
	}
}
