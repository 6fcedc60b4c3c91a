//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/rawlane/rawlane/bench/harness"
)

// auto is what a group has whose config is empty. It should be about as quick as the best of the
// others.
const auto = "auto"

// shared is what a user gives a group whose nodes do not know that they share the cores of this
// machine. Those of this benchmark do, and auto chooses the same.
var shared = fmt.Sprintf("auto:%d", runtime.NumCPU())

// algorithms are those of rawlane.
var algorithms = []string{"shuffle", "tree:2", "tree:3", "tree:4", "tree:8", "concurrent", auto, shared}

// Names of variants that the others are compared with.
const (
	mpiTCP = "Open MPI, TCP on lo"
	mpiSHM = "Open MPI, shared memory"
	ours   = "rawlane, "
)

// tryMPI reports whether there is an Open MPI. Without one, the command says what to install.
func (b *bench) tryMPI(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeoutCause(ctx, b.tries, fmt.Errorf("a first barrier took more than %v", b.tries))
	defer cancel()
	cmd := b.Programs.Command(limited, "bench", "barrier", "--work", "0s", "--json", "--compare-mpi", "--iters", "1")
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		why := cmp.Or(context.Cause(limited), errors.New(string(bytes.TrimSpace(out))))
		fmt.Fprintf(os.Stderr, "%v: the row of Open MPI is left out, and with it its ratios\n", why)
		return false, nil
	}
	return err == nil, ctx.Err()
}

// inTurn is the order of the algorithms in a round. Each is the first once, so that events at one
// moment of each run, such as the first garbage collection, do not always meet the same one.
func inTurn(round int) string {
	first := round % len(algorithms)
	return strings.Join(slices.Concat(algorithms[first:], algorithms[:first]), ",")
}

// openMPI is Open MPI as the command runs it: that can fail where tryMPI did not, with more
// processes.
func openMPI() harness.Others {
	return harness.Others{Name: "Open MPI", Flags: []string{"--compare-mpi", "--mpi-transport", "tcp,shm"},
		Rows: []string{mpiTCP, mpiSHM}}
}

// runRawlane is a round of all algorithms, and of Open MPI.
func (b *bench) runRawlane(ctx context.Context, t *table) error {
	args := []string{"barrier", "--work", "0s", "--link", "ring", "--mode", "processes", "--algo", inTurn(t.round),
		"--nodes", strconv.Itoa(t.nodes), "--iters", strconv.Itoa(b.Iters)}
	type line struct {
		Algo   string  `json:"algo"`
		Link   string  `json:"link"`
		Chosen string  `json:"chosen"`
		Loop   string  `json:"loop"`
		Mean   float64 `json:"mean_us"`
	}
	t.round++
	lines, err := harness.LinesBeside[line](ctx, b.Bench, &t.Rows, &t.mpi, args...)
	if err != nil {
		return err
	}
	for _, l := range lines {
		switch {
		case l.Loop != "tight":
		case l.Algo == "openmpi" && l.Link == "shm":
			t.Add(mpiSHM, l.Mean)
		case l.Algo == "openmpi":
			t.Add(mpiTCP, l.Mean)
		default:
			t.Add(ours+l.Algo, l.Mean)
			t.chosen[ours+l.Algo] = l.Chosen
		}
	}
	return nil
}

// loopbackUp sets the loopback up, which is down in the new namespace of an ordinary user.
func loopbackUp() error {
	lo, err := net.InterfaceByName("lo")
	if err != nil || lo.Flags&net.FlagUp != 0 {
		return err
	}
	link, err := netlink.LinkByIndex(lo.Index)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}
