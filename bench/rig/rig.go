//go:build linux

// Package rig runs the programs that benchmarks compare: two network namespaces joined by a veth pair, and in each a
// program on a processor core of its own.
package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// patience is how long a program may take: ten times what the slowest does.
const patience = 2 * time.Minute

// Rig is two namespaces. Programs in it are ended by Close.
type Rig struct {
	bed   *testbed.Bed
	cores [2]int
	dir   string
}

// New makes a rig. An ordinary user's process goes on inside a user namespace.
func New() (*Rig, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	r := &Rig{}
	if err := r.chooseCores(); err != nil {
		return nil, err
	}
	var err error
	if r.dir, err = os.MkdirTemp("", "rawlane-bench-"); err != nil {
		return nil, err
	}
	if r.bed, err = testbed.New(testbed.Config{}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.dir))
	}
	return r, nil
}

func (r *Rig) chooseCores() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("ask for the cores: %w", err)
	}
	found := 0
	for core := 0; core < 1024 && found < 2; core++ {
		if set.IsSet(core) {
			r.cores[found] = core
			found++
		}
	}
	if found < 2 {
		return errors.New("one core: the comparison needs two, for two programs that spin")
	}
	return nil
}

// Dir is a directory for programs, removed by Close.
func (r *Rig) Dir() string { return r.dir }

// Core returns the core of a node's programs.
func (r *Rig) Core(node int) int { return r.cores[node] }

// Close ends the programs and removes the rig.
func (r *Rig) Close() error { return errors.Join(r.bed.Close(), os.RemoveAll(r.dir)) }

// Pair runs answer on node 1, which prints "ready" when it is and runs until it is killed, and then ask on node 0,
// whose output is returned.
func (r *Rig) Pair(ctx context.Context, answer, ask []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server := exec.CommandContext(ctx, answer[0], answer[1:]...)
	server.Stderr = os.Stderr
	said, err := server.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := r.start(1, server); err != nil {
		return "", fmt.Errorf("%s: %w", answer[0], err)
	}
	defer func() {
		_ = server.Process.Kill() // it runs until then
		_ = server.Wait()         // killed, it has nothing to say
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		return "", fmt.Errorf("%s: said %q, want ready: %w", strings.Join(answer, " "), line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // ends with the program
	var out bytes.Buffer
	client := exec.CommandContext(ctx, ask[0], ask[1:]...)
	client.Stdout, client.Stderr = &out, os.Stderr
	if err := r.start(0, client); err != nil {
		return "", fmt.Errorf("%s: %w", ask[0], err)
	}
	if err := client.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(ask, " "), err)
	}
	return out.String(), nil
}

// start starts a program in a node's namespace and on its core: it inherits both from the node's thread.
func (r *Rig) start(node int, cmd *exec.Cmd) error {
	err := r.bed.Node(node).Do(func() error {
		var set unix.CPUSet
		set.Set(r.cores[node])
		return unix.SchedSetaffinity(0, &set)
	})
	if err != nil {
		return err
	}
	return r.bed.Node(node).Start(cmd)
}

// Rawlane builds the command.
func (r *Rig) Rawlane(ctx context.Context) (path string, err error) {
	path = filepath.Join(r.dir, "rawlane")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/rawlane/rawlane/cmd/rawlane").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command (run this in the repository): %w\n%s", err, out)
	}
	return path, nil
}

// IP returns the address of a node.
func (r *Rig) IP(node int) string { return testbed.IP(node, 0).String() }

// Interface is the name of each node's NIC.
const Interface = "eth0"
