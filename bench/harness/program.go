//go:build linux

package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/cpuset"
	"github.com/rawlane/rawlane/internal/testbed"
)

// Program is a program that is measured, in a network namespace.
type Program struct {
	cmd     *exec.Cmd
	in      io.Closer
	out     *bufio.Reader
	stopped bool // was told to end
}

// endTimeout is how long a program may take to end when ctx does.
const endTimeout = 5 * time.Second

// allowed are the cores that this process was given.
var allowed = func() (set unix.CPUSet) {
	_ = unix.SchedGetaffinity(0, &set) // Start reports what goes wrong
	return set
}()

// Start starts a program in a node's namespace and on its core: it inherits both from the node's
// thread, which keeps neither for the next program. Without cores it runs on any of this process's.
// The end of ctx is SIGTERM, so that it ends what it has started, as mpirun does; soon afterwards,
// as with the bed's closing, it is killed.
func Start(ctx context.Context, bed *testbed.Bed, node int, cores []int, args ...string) (*Program, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = endTimeout
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	err := errors.Join(err1, err2)
	if err == nil {
		set := allowed
		if cores != nil {
			set.Zero()
			set.Set(cores[node])
		}
		err = bed.Node(node).Do(func() error { return unix.SchedSetaffinity(0, &set) })
	}
	if err == nil {
		err = bed.Node(node).Start(cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return &Program{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// AwaitReady returns when the program has said that it is ready.
func (p *Program) AwaitReady() error {
	line, err := p.Line()
	if err == nil && line != "ready" {
		_ = p.cmd.Process.Kill() // it may have ended already, and that is what err will tell
		err = fmt.Errorf("%s: said %q, want ready: %w", p.cmd, line, p.cmd.Wait())
	}
	return err
}

// Line returns the next line that the program prints. Without one it ends the program.
func (p *Program) Line() (string, error) {
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.cmd.Process.Kill() // likewise
		return "", fmt.Errorf("%s: said %q, and no line: %w", p.cmd, line, errors.Join(err, p.cmd.Wait()))
	}
	return strings.TrimSpace(line), nil
}

// PID returns the number of the program's process.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Begin ends the program's input, for which it waits when it is ready.
func (p *Program) Begin() { _ = p.in.Close() }

// Stop tells the program to end (SIGTERM). It may have ended by itself, as streams do.
func (p *Program) Stop() {
	p.stopped = true
	_ = p.cmd.Process.Signal(unix.SIGTERM)
}

// Numbers returns the numbers that the program prints until its end; there are at least so many.
func (p *Program) Numbers(atLeast int) (all []float64, err error) {
	out, err := p.Text()
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(out, "ready\n") // if nobody has waited for that
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: unexpected output %q: %w", p.cmd, out, err)
		}
		all = append(all, n)
	}
	if len(all) < atLeast {
		return nil, fmt.Errorf("%s: printed too little: %q", p.cmd, out)
	}
	return all, nil
}

// Text returns what the program prints until its end.
func (p *Program) Text() (string, error) {
	out, err := io.ReadAll(p.out)
	ended := p.cmd.Wait()
	var exit *exec.ExitError
	if p.stopped && errors.As(ended, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGTERM {
		ended = nil
	}
	if err := errors.Join(err, ended); err != nil {
		return "", fmt.Errorf("%s: %w", p.cmd, err)
	}
	return string(out), nil
}

// Cores returns n cores that this process may use, of which none shares its hardware with another
// one while there are enough; nil if there are fewer.
func Cores(n int) []int {
	if allowed := cpuset.Allowed(); len(allowed) >= n {
		return allowed[:n]
	}
	return nil
}
