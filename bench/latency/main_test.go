//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rawlane/rawlane/bench/harness"
)

// The number of Go's processors is that of the variant's own run: those behind it have the user's.
func TestRawlane_ProcessorsOfOneRun(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	program := filepath.Join(t.TempDir(), "rawlane")
	const tells = "#!/bin/sh\necho \"{\\\"link\\\":\\\"ring\\\",\\\"p50_us\\\":${GOMAXPROCS:-0}}\"\n"
	if err := os.WriteFile(program, []byte(tells), 0o700); err != nil {
		t.Fatal(err)
	}
	pinned, free := way{pinned: true}, way{}
	l := &latency{Bench: new(harness.Bench), tables: map[way]*harness.Table{pinned: newTable(pinned, 1), free: newTable(free, 1)}}
	l.Programs.Rawlane = program
	names := map[string]string{"ring": ours}
	for range 2 {
		for _, run := range []struct {
			way   way
			procs int
		}{{pinned, 0}, {free, 1}} {
			if err := l.rawlane(run.way, run.procs, names, nil).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for w, want := range map[way]float64{pinned: 3, free: 1} {
		if r := l.tables[w].Find(ours); r.Min() != want || r.Max() != want {
			t.Errorf("%v: GOMAXPROCS was %v to %v, want %v", w, r.Min(), r.Max(), want)
		}
	}
}
