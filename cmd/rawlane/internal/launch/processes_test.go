package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// A file of --capture that node 0 could not create is told before there are processes, which would
// wait for node 0.
func TestRunProcesses_ChecksTheCapture(t *testing.T) {
	c := ClusterFlags{
		Kind: OverSHM, Nodes: 2, NICs: 1, Pin: "none", captureTo: filepath.Join(t.TempDir(), "none", "x"),
	}
	err := c.runProcesses(t.Context(), &cobra.Command{Use: "rawlane"})
	if want := "--capture " + c.captureTo + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("%v (want %s)", err, want)
	}
}

// The check changes nothing.
func TestCheckCapture(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, ok := range map[string]bool{"": true, there: true, filepath.Join(dir, "new"): true, os.DevNull: true, dir: false} {
		if err := (&ClusterFlags{captureTo: file}).checkCapture(); (err == nil) != ok {
			t.Errorf("%q: %v", file, err)
		}
	}
	if b, err := os.ReadFile(there); err != nil || string(b) != "kept" {
		t.Errorf("the file has %q (%v)", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left behind (%v)", err)
	}
}

// A program that a signal has ended has said nothing: the command does. Others have said why they
// failed, or have nobody who reads it.
func TestSayHow(t *testing.T) {
	for status, want := range map[int]string{1: "", 137: "rawlane: node 2: signal: killed\n", 141: ""} {
		cmd, said := &cobra.Command{Use: "rawlane"}, new(strings.Builder)
		cmd.SetErr(said)
		sayHow(cmd, &cli.StatusError{Node: 2, Status: status, How: "signal: killed"})
		if said.String() != want {
			t.Errorf("status %d: %q, want %q", status, said, want)
		}
	}
}
