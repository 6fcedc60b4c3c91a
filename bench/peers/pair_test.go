//go:build linux

package peers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/testbed"
)

// noMPI is an MPI whose rank 0 of 2 is alone, and writes what it is told: s is a message that is
// sent, b a barrier, t a look at the clock.
const noMPI = `
#include <stdio.h>
#include <stdlib.h>
#define MPI_BYTE 0
#define MPI_FLOAT 0
#define MPI_DOUBLE 0
#define MPI_SUM 0
#define MPI_COMM_WORLD 0
#define MPI_INFO_NULL 0
#define MPI_STATUS_IGNORE NULL
#define MPI_STATUSES_IGNORE NULL
#define MPI_LOCK_SHARED 0
typedef int MPI_Request, MPI_Win;
static double MPI_Wtime(void) { static double at; fputc('t', stderr); return at += 1; }
static int said(int c) { return fputc(c, stderr); }
#define MPI_Init(...) (void)0
#define MPI_Finalize() (void)0
#define MPI_Abort(comm, status) exit(status)
#define MPI_Comm_rank(comm, to) (*(to) = 0)
#define MPI_Comm_size(comm, to) (*(to) = 2)
#define MPI_Send(...) said('s')
#define MPI_Recv(...) (void)0
#define MPI_Isend(...) said('s')
#define MPI_Irecv(...) (void)0
#define MPI_Waitall(n, requests, statuses) (void)(requests)
#define MPI_Barrier(comm) said('b')
#define MPI_Reduce(from, to, ...) (*(to) = *(from))
#define MPI_Allreduce(...) said('s')
#define MPI_Alltoall(...) said('s')
#define MPI_Bcast(...) said('s')
#define MPI_Win_create(base, size, unit, info, comm, win) (*(win) = 0)
#define MPI_Win_lock(...) (void)0
#define MPI_Win_unlock(...) (void)0
#define MPI_Win_flush(...) (void)0
#define MPI_Win_free(...) (void)0
#define MPI_Put(...) said('s')
`

// pairWithoutMPI returns what runs the program, with its trace and its output.
func pairWithoutMPI(t *testing.T) func(args string) (trace, out string, status int) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "pair.c"), filepath.Join(dir, "pair")
	err = errors.Join(os.WriteFile(source, pairSource, 0o600),
		os.WriteFile(filepath.Join(dir, "mpi.h"), []byte(noMPI), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-I", dir, "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args string) (trace, out string, status int) {
		cmd := exec.Command(program, strings.Fields(args)...)
		var said strings.Builder
		cmd.Stderr = &said
		b, err := cmd.Output()
		return said.String(), string(b), testbed.ExitStatus(err)
	}
}

// What counts begins behind ten windows, or calls, at least: those of rawlane are as warm. As many
// bytes count as are asked for. That all is measured is said behind the result.
func TestPair_WarmsUp(t *testing.T) {
	run := pairWithoutMPI(t)
	for _, c := range []struct {
		args        string
		what        string // that is counted
		warm, count int
	}{
		{"stream 4096 64", "s", 640, 64},
		{"stream 64 64", "s", 640, 1},
		{"stream 1024000 1", "s", 1600 * 64, 1024000},
		{"both 4096 64", "s", 640, 64},
		{"both 4160 64", "s", 640, 128},
		{"barrier 5", "b", 10, 5},
	} {
		trace, out, status := run(c.args)
		before, after, _ := strings.Cut(trace, "t")
		counted, _, _ := strings.Cut(after, "t")
		if status != 0 || len(strings.Fields(out)) != 3 || !strings.HasSuffix(out, "\nend\n") ||
			strings.Count(before, c.what) != c.warm || strings.Count(counted, c.what) != c.count {
			t.Errorf("%s: status %d, said %q; %d to warm up, and %d that count; want %d and %d", c.args, status, out,
				strings.Count(before, c.what), strings.Count(counted, c.what), c.warm, c.count)
		}
	}
	// Those that look at the clock each time warm up likewise.
	for args, each := range map[string]string{"latency 5 8": "tst", "put 5 8": "tst", "bcast 5 8": "tstb"} {
		if trace, _, status := run(args); status != 0 || strings.Count(trace, "s") != 15 {
			t.Errorf("%s: status %d, %s; want 15 of %s", args, status, trace, each)
		}
	}
}

// What would measure nothing is a misuse: a result of 0 would count as one.
func TestPair_Misuse(t *testing.T) {
	run := pairWithoutMPI(t)
	for args, want := range map[string]string{
		"":                    "unknown measurement",
		"latency":             "want a number",
		"latency 5":           "sizes",
		"latency 0 8":         "want a number",
		"barrier 5 8":         "sizes",
		"broadcast 5 8":       "unknown measurement",
		"latency 5 0":         "size out of range",
		"latency 5 2000000":   "size out of range",
		"stream 63 64":        "fewer bytes",
		"stream 64 64 65":     "fewer bytes",
		"both 63 64":          "fewer bytes",
		"allreduce 5 3":       "multiple",
		"allreduce 5 8 1 512": "multiple",
	} {
		if said, out, status := run(args); status != 2 || out != "" || !strings.Contains(said, want) {
			t.Errorf("%q: status %d, said %q and %q; want 2, and %q", args, status, out, said, want)
		}
	}
}
