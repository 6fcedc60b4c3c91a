//go:build linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/bench/harness"
	"github.com/rawlane/rawlane/internal/testbed"
)

// Tools runs ucx_perftest and fi_pingpong between nodes 1, which serves, and 0 of a bed.
type Tools struct {
	Bed   *testbed.Bed
	Cores []int // of the nodes; nil for any
}

// Find says whether a tool is installed; the error, how to install it.
func Find(tool, packages string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("no %s: install it (Debian: %s)", tool, packages)
	}
	return nil
}

// Ports on which the tools' servers listen.
const (
	ucxPort = 13337
	fiPort  = 47592
)

// UCXResult is what ucx_perftest says in the end.
type UCXResult struct {
	P50US, MBPerS, MsgsPerS float64
}

// UCX runs a test of ucx_perftest over TCP.
func (t *Tools) UCX(ctx context.Context, test string, size, iters int) (r UCXResult, err error) {
	out, err := t.run(ctx, ucxPort, "env", "UCX_TLS=tcp", "UCX_NET_DEVICES="+testbed.Interface(0),
		"ucx_perftest", "-t", test, "-s", strconv.Itoa(size), "-n", strconv.Itoa(iters),
		"-w", strconv.Itoa(iters/10+1), "-f")
	if err != nil {
		return r, err
	}
	return parseUCX(out)
}

// parseUCX finds the numbers in the last line: of latencies and overheads in us, of bandwidth in
// MiB/s and of messages a second, first those of the last second and then those of the whole run.
func parseUCX(out string) (r UCXResult, err error) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "Final:" {
			fields = fields[1:]
		}
		if len(fields) != 8 {
			continue
		}
		var n [8]float64
		for i, f := range fields {
			var bad error
			n[i], bad = strconv.ParseFloat(f, 64)
			err = errors.Join(err, bad)
		}
		if err == nil {
			return UCXResult{P50US: n[1], MBPerS: n[5] * (1 << 20) / 1e6, MsgsPerS: n[7]}, nil
		}
		err = nil
	}
	return r, fmt.Errorf("unexpected output %q of ucx_perftest", out)
}

// Libfabric runs fi_pingpong with a provider and a type of endpoint, and returns the mean of half a
// round trip in us.
func (t *Tools) Libfabric(ctx context.Context, provider, endpoint string, size, iters int) (float64, error) {
	out, err := t.run(ctx, fiPort, "fi_pingpong", "-p", provider, "-e", endpoint,
		"-I", strconv.Itoa(iters), "-S", strconv.Itoa(size))
	if err != nil {
		return 0, err
	}
	return parseLibfabric(out)
}

// parseLibfabric finds the microseconds in the line of the one size: behind the bytes, what was
// sent and acknowledged, the total, the time and the bandwidth.
func parseLibfabric(out string) (us float64, err error) {
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 8 {
			if us, err := strconv.ParseFloat(fields[6], 64); err == nil {
				return us, nil
			}
		}
	}
	return 0, fmt.Errorf("unexpected output %q of fi_pingpong", out)
}

// run runs a tool as a server and, once it listens, as its client, whose output it returns.
func (t *Tools) run(ctx context.Context, port int, words ...string) (out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := harness.Start(ctx, t.Bed, 1, t.Cores, words...)
	if err != nil {
		return "", err
	}
	var client *harness.Program
	if err = awaitListening(ctx, server.PID(), port); err == nil {
		client, err = harness.Start(ctx, t.Bed, 0, t.Cores, append(words, testbed.IP(1, 0).String())...)
	}
	if err == nil {
		out, err = client.Text()
	}
	if err != nil {
		server.Stop() // else it ends by itself, after its one client
	}
	_, serverErr := server.Text()
	return out, errors.Join(err, serverErr)
}

// lookInterval is the time between two looks at whether a server listens.
const lookInterval = 5 * time.Millisecond

// awaitListening returns when a TCP port is listened on in the network namespace of a process. That
// of one that has ended is not there.
func awaitListening(ctx context.Context, pid, port int) error {
	for {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
		if err != nil {
			return fmt.Errorf("process %d has not listened on port %d: %w", pid, port, err)
		}
		if listens(string(table), port) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d does not listen on port %d: %w", pid, port, context.Cause(ctx))
		case <-time.After(lookInterval):
		}
	}
}

// listens reports whether there is a listening socket with a port in /proc/net/tcp.
func listens(table string, port int) bool {
	const listen = "0A"
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) > 3 && fields[3] == listen && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			return true
		}
	}
	return false
}
