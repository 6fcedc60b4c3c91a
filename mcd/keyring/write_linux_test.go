//go:build linux

package keyring_test

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/mcd/keyring"
)

// A key file that cannot be written whole is an error, and leaves no file. The limit is of files
// that package testing writes, too, but for a process of the test's own.
func TestWriteFile_WithoutRoom(t *testing.T) {
	if !testbed.Alone(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "key")
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := keyring.New().WriteFile(path)
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("no room for the file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is left of it: %v", err)
	}
}

// A file that was read, or refused, is closed.
func TestReadFile_Closes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := keyring.New().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); name == path {
				n++
			}
		}
		return n
	}
	if _, err := keyring.ReadFile(path); err != nil || open() > 0 {
		t.Errorf("read: %v, and open %d times", err, open())
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.ReadFile(path); err == nil || open() > 0 {
		t.Errorf("refused: %v, and open %d times", err, open())
	}
}
