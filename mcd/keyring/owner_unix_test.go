//go:build unix

package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no regular file is refused, at once: a named pipe would hold the program up until somebody
// writes to it.
func TestReadFile_NoRegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, os.DevNull} {
		if _, err := ReadFile(path); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "want a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestMayOwn(t *testing.T) {
	for _, c := range []struct {
		name          string
		user, program int
		sudo          string
		want          bool
	}{
		{"one's own", 1000, 1000, "", true},
		{"root's own", 0, 0, "", true},
		{"root's, of a user's program", 0, 1000, "", true},
		{"a user's, of root's program", 1000, 0, "", false},
		{"a user's, who called sudo", 1000, 0, "1000", true},
		{"another's than of who called sudo", 1001, 0, "1000", false},
		{"another's, of a program that is not root's", 1001, 1000, "1001", false},
	} {
		if got := mayOwn(c.user, c.program, c.sudo); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Root's program does not take a key that another user can change.
func TestReadFile_OfAnotherUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := New().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUDO_UID", "")
	if err := os.Chown(path, 4321, -1); err != nil {
		t.Skipf("files cannot be given away here: %v", err)
	}
	if _, err := ReadFile(path); !errors.Is(err, ErrReadable) || !strings.Contains(err.Error(), "belongs to user 4321") {
		t.Errorf("another user's: %v", err)
	}
	t.Setenv("SUDO_UID", "4321")
	if _, err := ReadFile(path); err != nil {
		t.Errorf("the user's who has called sudo: %v", err)
	}
	if err := os.Chown(path, os.Geteuid(), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err != nil {
		t.Errorf("its own: %v", err)
	}
}

// A key file that this user may not read is refused with what to do: root, as tests may be, may read
// any.
func TestOpenError_NotPermitted(t *testing.T) {
	err := openError("key", &os.PathError{Op: "open", Path: "key", Err: syscall.EACCES})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "want a file of this user's, mode 0600") {
		t.Errorf("%v", err)
	}
}
