//go:build linux

// Package netpair runs the programs that benchmarks compare: in two network namespaces joined by a
// veth pair, each program on a processor core of its own.
package netpair

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
)

// patience is how long a program may take: ten times what the slowest does.
const patience = 2 * time.Minute

// Pair is two namespaces to run programs in.
type Pair struct {
	bed   *testbed.Bed
	cores [2]int
	dir   string
}

// New makes a pair. The process of an ordinary user goes on in a user namespace.
func New() (*Pair, error) {
	if err := testbed.Reexec(); err != nil {
		return nil, err
	}
	p := &Pair{}
	if err := p.chooseCores(); err != nil {
		return nil, err
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "rawlane-bench-"); err != nil {
		return nil, err
	}
	if p.bed, err = testbed.New(testbed.Config{}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	return p, nil
}

func (p *Pair) chooseCores() error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return fmt.Errorf("ask for the cores: %w", err)
	}
	found := 0
	for core := 0; core < 1024 && found < 2; core++ {
		if set.IsSet(core) {
			p.cores[found] = core
			found++
		}
	}
	if found < 2 {
		return errors.New("one core: the comparison needs two, for two programs that spin")
	}
	return nil
}

// Dir is a directory for programs, removed by Close.
func (p *Pair) Dir() string { return p.dir }

// Core returns the core of a node's programs.
func (p *Pair) Core(node int) int { return p.cores[node] }

// Close ends the programs and removes the namespaces.
func (p *Pair) Close() error { return errors.Join(p.bed.Close(), os.RemoveAll(p.dir)) }

// Run runs answer on node 1, which prints "ready" when it is and runs until it is told to end
// (SIGTERM), and then ask on node 0. It returns what they printed; of answer, what came after
// "ready".
func (p *Pair) Run(ctx context.Context, answer, ask []string) (answered, asked string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := p.serve(ctx, answer)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", strings.Join(answer, " "), err)
	}
	var out bytes.Buffer
	client := exec.CommandContext(ctx, ask[0], ask[1:]...)
	client.Stdout, client.Stderr = &out, os.Stderr
	if err = p.start(0, client); err == nil {
		err = client.Wait()
	}
	answered, serverErr := server.end()
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", strings.Join(ask, " "), err)
	}
	if serverErr != nil {
		return "", "", fmt.Errorf("%s: %w", strings.Join(answer, " "), serverErr)
	}
	return answered, out.String(), nil
}

// server is a program that answers.
type server struct {
	cmd  *exec.Cmd
	said *bufio.Reader
}

// serve starts a server on node 1, and returns when it is ready. It is killed when the context
// ends.
func (p *Pair) serve(ctx context.Context, args []string) (*server, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.start(1, cmd); err != nil {
		return nil, err
	}
	s := &server{cmd, bufio.NewReader(out)}
	line, err := s.said.ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		_ = cmd.Process.Kill() // it may have ended already, and that is what err will tell
		return nil, fmt.Errorf("said %q, want ready: %w", line, errors.Join(err, cmd.Wait()))
	}
	return s, nil
}

// end tells the server to end, and returns the rest of what it says.
func (s *server) end() (said string, err error) {
	_ = s.cmd.Process.Signal(unix.SIGTERM) // it may have ended by itself, as streams do
	rest, err := io.ReadAll(s.said)
	ended := s.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGTERM {
		ended = nil // as it was told
	}
	return string(rest), errors.Join(err, ended)
}

// start starts a program in a node's namespace and on its core: it inherits both from the node's
// thread.
func (p *Pair) start(node int, cmd *exec.Cmd) error {
	err := p.bed.Node(node).Do(func() error {
		var set unix.CPUSet
		set.Set(p.cores[node])
		return unix.SchedSetaffinity(0, &set)
	})
	if err != nil {
		return err
	}
	return p.bed.Node(node).Start(cmd)
}

// WithoutOffloads has the nodes send and receive TCP's streams in frames, as on a wire: a veth pair
// would otherwise pass 64 KiB on as one. It is what "ethtool -K eth0 tso off gso off gro off" does.
func (p *Pair) WithoutOffloads() error {
	off := map[string]bool{"tx-tcp-segmentation": false, "tx-generic-segmentation": false, "rx-gro": false}
	for node := range p.cores {
		err := p.bed.Node(node).Do(func() error {
			e, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			return e.Change(Interface, off)
		})
		if err != nil {
			return fmt.Errorf("node %d: switch segmentation offload off: %w", node, err)
		}
	}
	return nil
}

// IP returns the address of a node.
func (p *Pair) IP(node int) string { return testbed.IP(node, 0).String() }

// Interface is the name of each node's NIC.
const Interface = "eth0"
