//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// Names of the C program's ways to wait.
const (
	cBlocking = "C, blocking"
	cSpinning = "C, spinning"
	cRing     = "C, spinning, ring"
)

// cVariant is a way to do barriers in C. More processes than cores cannot spin: each would keep the
// others from running.
type cVariant struct {
	name, wait string
	only       int  // with so many processes; 0: with any number
	bridge     bool // even for two, which otherwise are joined by a pair, as rawlane's are
}

var cVariants = []cVariant{
	{cBlocking, "block", 0, false},
	{cSpinning, "spin", 2, false},
	{cRing, "ring", 2, false},
	{"C, spinning, by a bridge", "spin", 2, true},
}

// runC returns the mean time of a barrier in C, in us, with one process per namespace.
func (b *bench) runC(ctx context.Context, n int, c cVariant) (mean float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	bed, err := testbed.New(testbed.Config{Nodes: n, Bridge: c.bridge})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	var ranks []*rank
	for k := range n {
		r, err := b.startRank(ctx, bed, k, c.wait)
		if err != nil {
			return 0, err
		}
		ranks = append(ranks, r)
	}
	for _, r := range ranks {
		if err := r.awaitReady(); err != nil {
			return 0, err
		}
	}
	for _, r := range ranks {
		_ = r.in.Close() // begin
	}
	var errs []error
	var said [][]byte
	for _, r := range ranks {
		rest, err := io.ReadAll(r.out)
		said, errs = append(said, rest), append(errs, err, r.cmd.Wait())
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	ns, err := strconv.ParseFloat(string(bytes.TrimSpace(said[0])), 64)
	return ns / 1e3, err
}

// rank is one of the processes.
type rank struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startRank starts a process on a core of its own if there are enough, as rawlane does. The bed's
// closing ends it.
func (b *bench) startRank(ctx context.Context, bed *testbed.Bed, k int, wait string) (*rank, error) {
	cmd := exec.CommandContext(ctx, b.program, "barrier", testbed.Interface(0),
		strconv.Itoa(k), strconv.Itoa(bed.Nodes()), strconv.Itoa(b.iters), wait)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, bed.Node(k).Do(func() error { return pin(k, bed.Nodes()) })); err != nil {
		return nil, err
	}
	if err := bed.Node(k).Start(cmd); err != nil {
		return nil, err
	}
	return &rank{cmd, in, bufio.NewReader(out)}, nil
}

func (r *rank) awaitReady() error {
	line, err := r.out.ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		return fmt.Errorf("%s: said %q, want ready: %w",
			strings.Join(r.cmd.Args, " "), line, errors.Join(err, r.cmd.Wait()))
	}
	return nil
}

// pin keeps the thread, and what it starts, on the k-th core that this process may use, if there is
// one for each of n.
func pin(k, n int) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < n {
		return err
	}
	for core := 0; ; core++ {
		if !all.IsSet(core) {
			continue
		}
		if k == 0 {
			one.Set(core)
			return unix.SchedSetaffinity(0, &one)
		}
		k--
	}
}
