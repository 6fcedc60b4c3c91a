//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/bench/harness"
)

// The program of the barriers is told to end, so that it can end those that it has started.
func TestRunBarriers_EndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	begun, told := filepath.Join(dir, "begun"), filepath.Join(dir, "told")
	c := &compare{Bench: &harness.Bench{Iters: 100}, barrier: filepath.Join(dir, "barrier")}
	program := fmt.Sprintf("#!/bin/sh\ntrap 'echo >%s; exit 1' TERM\necho >%s\nwhile :; do sleep 0.01; done\n", told, begun)
	if err := errors.Join(os.WriteFile(c.barrier, []byte(program), 0o700), unix.Mkfifo(begun, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // until the program has begun
		_, _ = os.ReadFile(begun)
		cancel()
	}()
	if err := c.runBarriers(ctx, 2); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(told); err != nil {
		t.Errorf("it was not told to end: %v", err)
	}
}

// Lines of rawlane that are not of what was asked for are an error: no column of a grid has them, and
// the row would be missing without a word.
func TestBench_UnexpectedLines(t *testing.T) {
	c := &compare{Bench: &harness.Bench{Iters: 100}}
	c.Programs.Rawlane = filepath.Join(t.TempDir(), "rawlane")
	if err := os.WriteFile(c.Programs.Rawlane, []byte("#!/bin/sh\necho '{\"link\":\"shm\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.bench(t.Context(), "shm", "latency", []int{64}, 100, func(line) { t.Error("it is added") }); err == nil {
		t.Error("no error")
	}
}
