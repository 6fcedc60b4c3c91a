//go:build linux

package outfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A file is replaced once all is written: who has it open reads what it had, and what cannot be
// written leaves it. A link, and the mode, stay.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("former"), 0o640), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if err := Replace(link, []byte("later")); err != nil {
		t.Fatal(err)
	}
	was := make([]byte, 6)
	if _, err := open.ReadAt(was, 0); err != nil || string(was) != "former" {
		t.Errorf("%q, %v: it was written in place", was, err)
	}
	info, err := os.Lstat(file)
	if is, err2 := os.ReadFile(file); errors.Join(err, err2) != nil || string(is) != "later" || info.Mode() != 0o640 {
		t.Errorf("%q, %v, %v, %v", is, info.Mode(), err, err2)
	}
	if to, err := os.Readlink(link); err != nil || to != "file" {
		t.Errorf("the link: %q, %v", to, err)
	}
	if err := Replace("/dev/full", []byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	if err := Replace(dir, nil); err == nil {
		t.Error("a folder was written")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v, %v: something is left", all, err)
	}
	fresh, plain := filepath.Join(dir, "fresh"), filepath.Join(dir, "plain")
	if err := errors.Join(Replace(fresh, []byte("x")), os.WriteFile(plain, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(fresh)
	want, err2 := os.Stat(plain)
	if errors.Join(err, err2) != nil || is.Mode() != want.Mode() {
		t.Errorf("%v, %v, %v, %v", is.Mode(), want.Mode(), err, err2)
	}
}

// Where the folder takes no other file, one that may be written is written in place, and no other is
// said to be writable.
func TestReplace_FolderThatTakesNone(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	for name, mode := range map[string]os.FileMode{file: 0o666, other: 0o444} {
		if err := errors.Join(os.WriteFile(name, []byte("former"), 0o666), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o755) }() // it is removed
	runtime.LockOSThread()                      // and the thread ends with the test
	askPermission(t)
	if err := errors.Join(Check(file), Replace(file, []byte("later"))); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "later" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{other, filepath.Join(dir, "none")} {
		if err := Check(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Check of %s: %v", name, err)
		}
		if err := Replace(name, nil); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Replace of %s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "former" {
		t.Errorf("%q, %v", b, err)
	}
}

// askPermission has the thread's files opened by their modes, as root's are not.
func askPermission(t *testing.T) {
	t.Helper()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&head, &data[0]); err != nil {
		t.Fatal(err)
	}
}
