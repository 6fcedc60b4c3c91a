//go:build linux

package peers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/bench/mpi"
	"github.com/rawlane/rawlane/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Main(m)) }

func TestParsePairs(t *testing.T) {
	got, err := parsePairs("a warning of the launcher\n64 2.5\n1400 1e3\n")
	if want := (Pairs{64: 2.5, 1400: 1000}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parsePairs("no numbers\n"); err == nil {
		t.Errorf("took %v", got)
	}
}

// ucx is what ucx_perftest -f prints.
const ucx = `[1700000000.1] [host:1:0] perftest.c:1 UCX WARN something
Final:                  1000      4.125     4.500     4.600       13.56       13.26      222222      217391
`

func TestParseUCX(t *testing.T) {
	got, err := parseUCX(ucx)
	if err != nil || got.P50US != 4.125 || got.MsgsPerS != 217391 || got.MBPerS < 13.9 || got.MBPerS > 13.91 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, out := range []string{"", "Final: 1 2 3\n", "Final: 1 2 3 4 x 6 7 8\n"} {
		if got, err := parseUCX(out); err == nil {
			t.Errorf("%q: took %+v", out, got)
		}
	}
}

func TestParseLibfabric(t *testing.T) {
	const out = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n" +
		"64      300     =300     37k         0.16s      0.24     264.52       0.00\n"
	if got, err := parseLibfabric(out); err != nil || got != 264.52 {
		t.Errorf("%v, %v", got, err)
	}
	head, _, _ := strings.Cut(out, "\n")
	if got, err := parseLibfabric(head); err == nil {
		t.Errorf("took %v of the head alone", got)
	}
}

func TestListens(t *testing.T) {
	const table = "  sl  local_address rem_address   st\n" +
		"   0: 00000000:B9E8 00000000:0000 0A 00000000:00000000\n   1: 0100007F:3419 0100007F:B9E8 01 00000000:00000000\n"
	for port, want := range map[int]bool{47592: true, 13337: false, 47593: false} {
		if got := listens(table, port); got != want {
			t.Errorf("port %d: %v", port, got)
		}
	}
}

// A server that ends before it listens is not waited for, and says why.
func TestTools_ServerThatEnds(t *testing.T) {
	tools := &Tools{Bed: testbed.ForTest(t, testbed.Config{})}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := tools.run(ctx, ucxPort, "sh", "-c", "exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || ctx.Err() != nil {
		t.Errorf("%v, want an error with status 3 before the time is over: %v", err, ctx.Err())
	}
}

// What is measured counts once the program has said so, however its launcher ends; before that it does not.
func TestRun_LaunchersEnd(t *testing.T) {
	h := &Hosts{bed: testbed.ForTest(t, testbed.Config{})}
	for _, c := range []struct {
		name, does, err string
	}{
		{"ends", "echo end", ""},
		{"stays", "echo end; exec sleep 1000", ""},
		{"fails behind the end", "echo end; exit 3", "exit status 3"},
		{"ends too early", "exit 0", "no line"},
		{"fails", "exit 3", "exit status 3"},
	} {
		launcher := filepath.Join(t.TempDir(), "launch")
		if err := os.WriteFile(launcher, []byte("#!/bin/sh\necho 2 1.5\n"+c.does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		m := &MPI{MPI: &mpi.MPI{Name: mpi.OpenMPI, Launcher: launcher}, leaving: 30 * time.Second}
		if c.name == "stays" {
			m.leaving = time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		got, err := m.Run(ctx, h, TCP, "barrier", 1)
		cancel()
		if c.err == "" && (err != nil || got[2] != 1.5) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, %v; want an error with %q", c.name, got, err, c.err)
		}
	}
}

// Each host has a name of its own up to the first dot, by which Open MPI tells hosts apart.
func TestHosts_Names(t *testing.T) {
	hosts, err := NewHosts(t.Context(), testbed.ForTest(t, testbed.Config{}), 2, nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for k := range 2 {
		out, err := exec.Command(hosts.agent, "-x", testbed.IP(k, 0).String(), "uname", "-n").Output()
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimSpace(string(out)), ".")
		names[name] = true
	}
	if own, err := os.Hostname(); len(names) != 2 || names[own] || err != nil {
		t.Errorf("%v, %v: want two names, neither of which is this machine's", names, err)
	}
	if err := hosts.Close(); err != nil {
		t.Error(err)
	}
}

// What is installed runs between two namespaces.
func TestPeers(t *testing.T) {
	cores := harness.Cores(2)
	bed := testbed.ForTest(t, testbed.Config{})
	dir := t.TempDir()
	hosts, err := NewHosts(context.Background(), bed, 2, cores, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hosts.Close(); err != nil {
			t.Error(err)
		}
	})
	tools := &Tools{Bed: bed, Cores: cores}
	if err := Find("fi_pingpong", "libfabric-bin"); err == nil {
		if us, err := tools.Libfabric(t.Context(), "tcp", "msg", 64, 100); err != nil || us <= 0 {
			t.Errorf("libfabric: %v, %v", us, err)
		}
	}
	if err := Find("ucx_perftest", "ucx-utils"); err == nil {
		if r, err := tools.UCX(t.Context(), "tag_lat", 64, 100); err != nil || r.P50US <= 0 {
			t.Errorf("UCX: %+v, %v", r, err)
		}
	}
	if testing.Short() {
		return // the rest spins
	}
	for _, find := range []func(dir string) (*MPI, error){
		func(dir string) (*MPI, error) { return OpenMPI(t.Context(), dir) },
		func(dir string) (*MPI, error) { return MPICH(t.Context(), dir) },
	} {
		m, err := find(dir)
		if err != nil {
			t.Log(err)
			continue
		}
		for _, over := range []Over{TCP, Memory} {
			got, err := m.Run(t.Context(), hosts, over, "latency", 20, 4, 64)
			if err != nil || got[4] <= 0 || got[64] <= 0 {
				t.Errorf("%s, %d: %v, %v", m.Name, over, got, err)
			}
		}
		if got, err := m.Run(t.Context(), hosts, TCP, "barrier", 20); err != nil || got[2] <= 0 {
			t.Errorf("%s: %v, %v", m.Name, got, err)
		}
	}
}
