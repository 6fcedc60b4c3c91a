//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The go tool ends with its compilers, and what it leaves is in the folder of the programs.
func TestBuildTool_EndsWithItsContext(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	begun := filepath.Join(bin, "begun")
	program := fmt.Sprintf("#!/bin/sh\nsleep 60 >/dev/null 2>&1 &\necho $! \"$GOTMPDIR\" >%s\nwait\n", begun)
	err := errors.Join(os.WriteFile(filepath.Join(bin, "go"), []byte(program), 0o700), unix.Mkfifo(begun, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- BuildTool(ctx, "bench/barrier", filepath.Join(dir, "barrier")) }()
	said, err := os.ReadFile(begun) // behind the compiler's start
	if err != nil {
		t.Fatal(err)
	}
	var compiler int
	var folder string
	if _, err := fmt.Sscan(string(said), &compiler, &folder); err != nil || folder != dir {
		t.Fatalf("said %q, want its folder in %s: %v", said, dir, err)
	}
	fd, err := unix.PidfdOpen(compiler, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	const patience = 10_000 // ms
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience); n != 1 || err != nil {
		t.Errorf("the compiler goes on: %v", err)
		_ = unix.Kill(compiler, unix.SIGKILL)
	}
}

// rawlane is built where the environment says, and stays.
func TestBuild_Kept(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	kept := filepath.Join(t.TempDir(), "not", "yet", "there")
	t.Setenv("PATH", bin) // no C compiler
	t.Setenv("CC", "")
	const program = "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done; echo built >\"$2\"\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"": dir, kept: kept} {
		t.Setenv(Kept, folder)
		p, err := build(t.Context(), dir)
		if err != nil || p.Rawlane != filepath.Join(want, "rawlane") {
			t.Errorf("%s=%q: rawlane is %q, want it in %q: %v", Kept, folder, p.Rawlane, want, err)
		}
		if _, err := os.Stat(p.Rawlane); err != nil {
			t.Error(err)
		}
	}
}
