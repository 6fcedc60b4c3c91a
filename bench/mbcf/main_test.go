//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/bench/harness"
)

// A program that fails says why.
func TestProgram_ThatFails(t *testing.T) {
	rawlane := filepath.Join(t.TempDir(), "rawlane")
	if err := os.WriteFile(rawlane, []byte("#!/bin/sh\necho the result is not verified >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tables, _ := newTables()
	err := tables.program(t.Context(), &harness.Programs{Rawlane: rawlane}, "CG", "cg")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(err.Error(), "is not verified") {
		t.Error(err)
	}
}
