//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// algorithms that are compared; auto is to choose about as well as the best of them.
var algorithms = []string{"shuffle", "tree:2", "tree:3", "tree:4", "tree:8", "concurrent", "auto"}

// The names of contestants that others are compared with.
const (
	openMPI = "Open MPI, TCP on lo"
	ours    = "rawlane, "
)

// benchBarrier is the command that users run: it makes its own namespaces, and runs Open MPI first
// if it is told to.
func (b *bench) benchBarrier(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"bench", "barrier", "--work", "0s", "--json"}, args...)
	cmd := exec.CommandContext(ctx, b.rawlane, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) } // so that it ends what it has started
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// tryMPI reports whether there is an Open MPI; where there is none, the command says what to
// install.
func (b *bench) tryMPI(ctx context.Context) (bool, error) {
	out, err := b.benchBarrier(ctx, "--compare-mpi", "--iters", "1").CombinedOutput()
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "%s: the row of Open MPI is left out, and with it its ratios\n", bytes.TrimSpace(out))
		return false, nil
	}
	return err == nil, ctx.Err()
}

// inTurn is the algorithms' order in a round. Each comes first once: what happens at one moment of
// each run, such as the first collection of garbage, shall not always meet the same.
func inTurn(round int) string {
	first := round % len(algorithms)
	return strings.Join(slices.Concat(algorithms[first:], algorithms[:first]), ",")
}

// runRawlane is a round of all algorithms, and of Open MPI.
func (b *bench) runRawlane(ctx context.Context, f *field, round int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	args := []string{"--link", "ring", "--mode", "processes", "--algo", inTurn(round), "--nodes", strconv.Itoa(f.nodes), "--iters", strconv.Itoa(b.iters)}
	if b.mpi {
		args = append(args, "--compare-mpi")
	}
	cmd := b.benchBarrier(ctx, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	for _, text := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		var line struct {
			Algo   string  `json:"algo"`
			Chosen string  `json:"chosen"`
			Loop   string  `json:"loop"`
			Mean   float64 `json:"mean_us"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		switch {
		case line.Loop != "tight":
		case line.Algo == "openmpi":
			f.add(openMPI, line.Mean)
		default:
			f.add(ours+line.Algo, line.Mean).chosen = line.Chosen
		}
	}
	return nil
}

// loopbackUp sets the loopback up, which is down in an ordinary user's new namespace.
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
