package baseline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CC may have arguments, as "ccache gcc" has; one that is not there is an error, and no reason to leave
// out what was asked for.
func TestBuild_CC(t *testing.T) {
	dir := t.TempDir()
	cc := filepath.Join(dir, "wrapper")
	if err := os.WriteFile(cc, []byte("#!/bin/sh\necho \"$@\" >\"$0.said\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", cc+" gcc -g ")
	path, err := Build(dir)
	if err != nil || path != filepath.Join(dir, "baseline") {
		t.Errorf("%q, %v", path, err)
	}
	if said, err := os.ReadFile(cc + ".said"); err != nil || !strings.HasPrefix(string(said), "gcc -g -O2 ") {
		t.Errorf("%q, %v", said, err)
	}
	t.Setenv("CC", filepath.Join(dir, "absent")+" gcc")
	if path, err := Build(dir); err == nil || !strings.HasPrefix(err.Error(), "CC=") {
		t.Errorf("%q, %v of one that is not there", path, err)
	}
	t.Setenv("CC", "  ")
	t.Setenv("PATH", dir)
	if path, err := Build(dir); err != nil || path != "" {
		t.Errorf("%q, %v without any", path, err)
	}
}
