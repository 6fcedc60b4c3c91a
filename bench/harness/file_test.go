//go:build linux

package harness

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file is replaced once all is written: who has it open reads what it had, and what cannot be
// written leaves it. A link, and the mode, stay.
func TestWriteFile(t *testing.T) {
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
	if err := WriteFile(link, []byte("later")); err != nil {
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
	if err := WriteFile("/dev/full", []byte("x")); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("/dev/full: %v", err)
	}
	if err := WriteFile(dir, nil); err == nil {
		t.Error("a folder was written")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v, %v: something is left", all, err)
	}
	fresh := filepath.Join(dir, "fresh")
	if err := WriteFile(fresh, []byte("x")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}
