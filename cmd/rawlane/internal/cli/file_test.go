package cli

import (
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
