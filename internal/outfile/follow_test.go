package outfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFollow(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	if err := os.MkdirAll(at("a/b"), 0o777); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"one": "file", "two": at("one"), "folder": "a/b", "a/b/up": "../next", "a/next": at("folder/file"),
		"deep": "folder/up", "nowhere": "none/file", "loop": "pool", "pool": "loop",
	} {
		if err := os.Symlink(filepath.FromSlash(to), at(from)); err != nil {
			t.Skip(err)
		}
	}
	for from, want := range map[string]string{
		"file": "file", "one": "file", "two": "file", "deep": "folder/file", "nowhere": "none/file", "none/x": "none/x", "folder/x": "folder/x",
	} {
		if got, err := Follow(at(from)); got != at(want) || err != nil {
			t.Errorf("%s leads to %s, %v, want %s", from, got, err, at(want))
		}
	}
	if got, err := Follow(at("loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop leads to %s, %v", got, err)
	}
}
