//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
)

// fake is a rawlane whose Open MPI fails in runs of more than two processes, from the second on.
const fake = `#!/bin/sh
case "$*" in
*"--nodes 2 "*) ;;
*--compare-mpi*) echo >>"$0.runs"; test $(wc -l <"$0.runs") = 1 || exit 1 ;;
esac
echo '{"algo":"auto","chosen":"star","loop":"tight","mean_us":1.5}'
case "$*" in
*--compare-mpi*) echo '{"algo":"openmpi","link":"tcp","loop":"tight","mean_us":9}' ;;
esac
`

// Where Open MPI fails late, as with more processes than it has slots for, its rows are left out,
// also what it had in earlier rounds; those of rawlane are not.
func TestRunRawlane_OpenMPIFails(t *testing.T) {
	b := bench{Bench: &harness.Bench{Name: "barrier", Rounds: 3, Iters: 10}, mpi: true}
	b.Programs.Rawlane = filepath.Join(t.TempDir(), "rawlane")
	if err := os.WriteFile(b.Programs.Rawlane, []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	for nodes, want := range map[int]string{2: "[rawlane, auto Open MPI, TCP on lo]", 8: "[rawlane, auto]"} {
		table := newTable(nodes, b.Rounds)
		table.mpi = openMPI()
		for range b.Rounds {
			if err := b.runRawlane(t.Context(), table); err != nil {
				t.Fatalf("%d processes: %v", nodes, err)
			}
		}
		var rows []string
		for _, r := range table.Rows {
			rows = append(rows, r.Name)
			if len(r.Values) != b.Rounds {
				t.Errorf("%d processes: %s has %v", nodes, r.Name, r.Values)
			}
		}
		if got := fmt.Sprint(rows); got != want {
			t.Errorf("%d processes: rows %s, want %s", nodes, got, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	table := newTable(8, b.Rounds)
	table.mpi = openMPI()
	if err := b.runRawlane(ended, table); !errors.Is(err, context.Canceled) || len(table.mpi.Flags) == 0 {
		t.Errorf("a run that was ended: %v, and %q is left out", err, table.mpi.Name)
	}
}

// An Open MPI that does not end is left out, as one that is not there.
func TestTryMPI_DoesNotEnd(t *testing.T) {
	b := bench{Bench: &harness.Bench{Name: "barrier"}, tries: 100 * time.Millisecond}
	b.Programs.Rawlane = filepath.Join(t.TempDir(), "rawlane")
	if err := os.WriteFile(b.Programs.Rawlane, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if there, err := b.tryMPI(t.Context()); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
}

// What spins has a core for each process, or does not run: one would keep the other from answering.
func TestRuns_WhatSpinsHasCores(t *testing.T) {
	for _, c := range cVariants {
		spins := strings.Contains(c.name, "spinning")
		if c.runs(2, 2) != c.runs(2, 64) || c.runs(2, 1) == spins || c.runs(4, 2) && spins {
			t.Errorf("%s: on 1 core %v, on 2 %v; 4 processes on 2: %v", c.name, c.runs(2, 1), c.runs(2, 2), c.runs(4, 2))
		}
	}
}
