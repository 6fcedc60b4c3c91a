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
	if err := os.WriteFile(cc, []byte("#!/bin/sh\necho \"$@\" >>\"$0.said\"\nwhile [ $1 != -o ]; do shift; done\n: >\"$2\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", cc+" gcc -g ")
	path, err := Build(dir)
	if _, absent := os.Stat(path); err != nil || absent != nil {
		t.Errorf("%q, %v, %v", path, err, absent)
	}
	if again, err := Build(dir); err != nil || again != path {
		t.Errorf("%q, %v where %q is", again, err, path)
	}
	said, err := os.ReadFile(cc + ".said")
	if err != nil || !strings.HasPrefix(string(said), "gcc -g -O2 ") || strings.Count(string(said), "\n") != 1 {
		t.Errorf("%q, %v", said, err)
	}
	t.Setenv("CC", cc+" gcc")
	if other, err := Build(dir); err != nil || other == path {
		t.Errorf("%q, %v of another compiler", other, err)
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
