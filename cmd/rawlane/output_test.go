package main

import (
	"bytes"
	"io/fs"
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
		"version", "doctor", "ping 1 --count 1", "matrix --count 1 --rate 0", "matrix --count 1 --rate 0 --json",
		"matrix --check", "barrier show", "barrier trace --iters 1", "route vlans --topology vbft:2x2x2",
	} {
		var errs bytes.Buffer
		status := cli.Execute(t.Context(), cli.NewRoot(verbs), strings.Fields(args), strings.NewReader(""), fullDisk{}, &errs)
		if status != cli.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%s: status %d, said %q", args, status, &errs)
		}
	}
}
