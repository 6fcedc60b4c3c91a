//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that cannot be written is told before the run, and what it has is not touched by that.
func TestCheckFile(t *testing.T) {
	dir := t.TempDir()
	if err := checkFile(dir); err == nil {
		t.Error("a folder can be written")
	}
	file := filepath.Join(dir, "new", "results.md")
	if err := checkFile(file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file without results is left")
	}
	if err := os.WriteFile(file, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkFile(file); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "former" {
		t.Errorf("%q, %v", b, err)
	}
}
