package testbed

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where a program ends just as nobody reads its output any more, as one does that is ended by
// SIGPIPE, what it has started is ended, too, and the folder removed. Here the program itself is the
// last to have the end that is read.
func TestAgent_ProgramEndsAtTheHangup(t *testing.T) {
	runtime.LockOSThread() // with which the programs end
	defer runtime.UnlockOSThread()
	stdout := os.Stdout
	defer func() { os.Stdout = stdout }()
	for i := range 20 {
		dir := t.TempDir()
		folder, left, pipe := filepath.Join(dir, "folder"), filepath.Join(dir, "left"), filepath.Join(dir, "pipe")
		if err := errors.Join(os.Mkdir(folder, 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
			t.Fatal(err)
		}
		out, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if os.Stdout, err = os.OpenFile(pipe, os.O_WRONLY, 0); err != nil {
			t.Fatal(err)
		}
		script := "echo > begun; until test -e closed; do sleep 0.01; done"
		if i == 0 { // once: nobody may ask for the status of what is left for a while
			script = "sh -c 'echo > parted; exec sleep 600' 3<&- & echo $! > left; " + // which has the pipe no more
				"until test -e parted; do sleep 0.01; done; " + script
		}
		p := exec.Command("sh", "-c", "exec 3< pipe; "+script)
		p.Dir = dir
		go func() {
			for !isThere(filepath.Join(dir, "begun")) {
				time.Sleep(time.Millisecond)
			}
			_ = out.Close()
			_ = os.WriteFile(filepath.Join(dir, "closed"), nil, 0o600) // or the program waits, and the test with it
		}()
		err = runUntilHangup(t.Context(), p, nil, folder)
		os.Stdout = stdout // the other stays open: an agent looks at it until its process ends
		if err != nil {
			t.Fatal(err)
		}
		if isThere(folder) {
			t.Fatal("the folder is left")
		}
		if pid, err := os.ReadFile(left); err == nil && isThere("/proc/"+strings.TrimSpace(string(pid))+"/exe") {
			t.Fatal("what the program has started goes on")
		}
	}
}

// A program that the launcher asks to end says its last words to it, and the folder is the launcher's. The end of
// the input alone asks for nothing: a remote shell may have none.
func TestAgent_IsAsked(t *testing.T) {
	runtime.LockOSThread() // with which the programs end
	defer runtime.UnlockOSThread()
	for asked, want := range map[string]string{"x": "asked", "": "by itself"} {
		dir := t.TempDir()
		folder := filepath.Join(dir, "folder")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		script := "trap 'echo asked; exit 0' TERM; echo > begun; "
		if asked == "" {
			script += "echo by itself"
		} else {
			script += "for k in $(seq 300); do sleep 0.01; done; echo not asked"
		}
		p := exec.Command("sh", "-c", script)
		said := new(strings.Builder)
		p.Dir, p.Stdout = dir, said
		input, launcher := io.Pipe()
		go func() {
			for asked != "" && !isThere(filepath.Join(dir, "begun")) {
				time.Sleep(time.Millisecond)
			}
			_, _ = io.WriteString(launcher, asked) // a pipe in memory
			_ = launcher.Close()
		}()
		if err := runUntilHangup(t.Context(), p, input, folder); err != nil {
			t.Fatal(err)
		}
		if said.String() != want+"\n" {
			t.Errorf("%q, want %q", said, want)
		}
		if files, err := os.ReadDir(folder); err != nil || len(files) > 0 {
			t.Errorf("in the folder: %v, %v, want none", files, err)
		}
	}
}

func isThere(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
