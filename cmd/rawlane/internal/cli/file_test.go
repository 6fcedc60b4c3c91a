package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A folder cannot be written as a file, which is told before a long run.
func TestCheckFile_Folder(t *testing.T) {
	dir := t.TempDir()
	if CheckFile("out", dir) == nil || WriteFile("out", dir, nil) == nil {
		t.Error("a folder counts as a file")
	}
	if err := CheckFile("out", os.DevNull); err != nil {
		t.Error(err)
	}
}

// A link stays one, and what it leads to is written, whether that is there or not yet.
func TestWriteFile_FollowsLinks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"new", "newer"} {
		if err := errors.Join(CheckFile("out", link), WriteFile("out", link, []byte(text))); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); err != nil || to != file {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != text {
			t.Errorf("the file has %q, %v", b, err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if CheckFile("out", link) == nil || WriteFile("out", link, nil) == nil {
		t.Error("a link to a folder that is gone is replaced")
	}
}

// An open file that has a name in /dev, as standard output does, is written in place: to replace
// /dev/stdout itself would take it from all programs of the machine.
func TestWriteFile_OpenFile(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := fmt.Sprintf("/dev/fd/%d", f.Fd())
	if err := errors.Join(CheckFile("svg", name), WriteFile("svg", name, []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || string(b) != "new" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// What is there beside the file stays, and nothing is left there.
func TestWriteFile_LeavesOthersAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table")
	other := file + ".part"
	if err := os.WriteFile(other, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{CheckFile("out", file), WriteFile("out", file, []byte("new"))} {
		if err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(other); err != nil || string(b) != "mine" {
			t.Errorf("%s has %q, %v", other, b, err)
		}
	}
	if there, _ := filepath.Glob(file + "*"); len(there) != 2 {
		t.Errorf("there is %q", there)
	}
}
