package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/procgroup"
	"github.com/rawlane/rawlane/internal/testbed"
)

// runProcesses runs this same verb once per node, each in a network namespace of its own, as if the
// namespaces were machines; over shared memory, side by side. The output of node 0 is that of the
// command.
func (c *ClusterFlags) runProcesses(ctx context.Context, cmd *cobra.Command) error {
	cores, err := c.Cores()
	if err != nil {
		return err
	}
	if err := c.checkCapture(); err != nil {
		return err
	}
	at, err := c.choosePlace()
	if err != nil {
		return err
	}
	defer at.close()
	program, err := thisProgram()
	if err != nil {
		return err
	}
	programs := make([]*exec.Cmd, c.Nodes)
	for k := range programs {
		programs[k] = c.nodeProgram(cmd, program, k, cores, at)
	}
	err = runWhileRead(ctx, at.start, programs, c.Grace)
	sayHow(cmd, err)
	return err
}

// runWhileRead is RunAll, but that there is no grace where a program ends because nobody reads what
// it prints, which is the command's output: the others have nothing to add to that.
func runWhileRead(user context.Context, start Starter, programs []*exec.Cmd, grace time.Duration) error {
	ctx, stop := context.WithCancelCause(user)
	defer stop(nil)
	return RunAll(ctx, start, programs, grace, func(_ int, err error) {
		if hasNoReader(err) {
			stop(err)
		}
	})
}

// sayHow tells the user of a program that a signal has ended: it could not say so itself.
func sayHow(cmd *cobra.Command, err error) {
	var status *cli.StatusError
	if errors.As(err, &status) && status.Status > cli.ExitSignal && !hasNoReader(err) {
		cmd.PrintErrf("%s: %v\n", cmd.CommandPath(), status)
	}
}

// nodeProgram is this verb as the program of one node, on its core if there are cores.
func (c *ClusterFlags) nodeProgram(
	cmd *cobra.Command, program string, node int, cores []int, at *place,
) *exec.Cmd {
	without := []string{"pin"}
	if c.Kind != OverSHM { // else it is the interfaces'
		without = append(without, "mtu")
	}
	if node != 0 {
		without = append(without, "capture")
	}
	args := append(commandLine(cmd, without...), "--node="+strconv.Itoa(node), "--link="+c.Kind)
	args = append(args, at.where(node)...)
	if cores != nil {
		args = append(args, "--pin="+strconv.Itoa(cores[node]))
	}
	p := exec.Command(program, args...)
	p.Args[0] = os.Args[0]
	p.Env = append(ShareOfCores(c.Nodes), cli.EnvLocal+"="+strconv.Itoa(runtime.NumCPU()))
	p.Env = append(p.Env, at.env...)
	p.Stderr = cmd.ErrOrStderr()
	if node == 0 {
		p.Stdout = cmd.OutOrStdout()
	}
	return p
}

// Interfaces lists the interfaces of a bed's node, separated by commas.
func Interfaces(nics int) string {
	var names []string
	for nic := range nics {
		names = append(names, testbed.Interface(nic))
	}
	return strings.Join(names, ",")
}

// ShareOfCores is the environment for one of n Go programs on this machine. Each runs on its share
// of the cores, one at least, because the threads of a program with more compete with the others.
// A value that the user has set stays.
func ShareOfCores(n int) []string {
	const variable = "GOMAXPROCS"
	env := os.Environ()
	if os.Getenv(variable) == "" {
		env = append(env, variable+"="+strconv.Itoa(max(1, runtime.NumCPU()/n)))
	}
	return env
}

// commandLine is the verb of cmd with its flags, except some.
func commandLine(cmd *cobra.Command, except ...string) []string {
	words := strings.Fields(cmd.CommandPath())[1:]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(except, f.Name) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	return words
}

// Starter starts the program of a node. It may wait before, until ctx ends.
type Starter func(ctx context.Context, node int, program *exec.Cmd) error

// RunAll starts program k on node k, and returns when all have ended, and what they have started
// and still prints for them: by themselves; after the grace, because one has failed; or at once,
// because the user's context has ended. One that has a Cancel is asked to end by that, and not by
// SIGTERM. A program that fails has printed the reason, and its exit status becomes that of the
// command. The programs are killed if this process is. ended, unless it is nil, is called when all
// that a node's program prints is there, with how it has failed.
func RunAll(
	user context.Context, start Starter, programs []*exec.Cmd, grace time.Duration,
	ended func(node int, err error),
) error {
	ctx, cancel := context.WithCancelCause(user)
	defer cancel(nil)
	starting := user
	if grace == 0 {
		starting = ctx // what would be ended at once is not waited for
	}
	var running sync.WaitGroup
	var ending atomic.Bool
	over := make([]atomic.Bool, len(programs))
	for k, p := range programs {
		if ctx.Err() != nil && grace == 0 {
			break // it would be ended at once
		}
		procgroup.Own(p)
		procgroup.DieWithThread(p)
		started := make(chan error, 1)
		running.Go(func() {
			runtime.LockOSThread() // which is to stay as long as the program
			defer runtime.UnlockOSThread()
			err := start(starting, k, p)
			started <- err
			if err != nil {
				return
			}
			err = wait(p)
			if err != nil {
				err = programError(k, err)
				cancel(err)
				procgroup.EndWithin(p, endTimeout) // what it has started
			}
			_ = p.Wait() // for the output, which others may hold open
			if err == nil && ending.Load() {
				procgroup.EndWithin(p, endTimeout) // likewise, where it has ended well
			}
			over[k].Store(true)
			if ended != nil {
				ended(k, err)
			}
		})
		if err := <-started; err != nil {
			cancel(fmt.Errorf("start node %d: %w", k, err))
			grace = 0 // the others would wait for one that does not come
			break
		}
	}
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }() // ends with the programs
	select {
	case <-all:
		return context.Cause(ctx)
	case <-ctx.Done():
	}
	select {
	case <-all:
		return context.Cause(ctx)
	case <-time.After(grace):
	case <-user.Done():
	}
	ending.Store(true)
	endAll(programs, over, all)
	return context.Cause(ctx)
}

// wait returns when a program itself has ended.
func wait(p *exec.Cmd) error {
	state, err := p.Process.Wait()
	if err == nil && !state.Success() {
		return &exec.ExitError{ProcessState: state}
	}
	return err
}

// hasNoReader says whether a program ended because nobody reads what it prints.
func hasNoReader(cause error) bool {
	var status *cli.StatusError
	return errors.As(cause, &status) && status.Status == cli.ExitSignal+int(syscall.SIGPIPE)
}

// endTimeout is how long programs, and what they have started, may take to end after SIGTERM.
const endTimeout = 2 * time.Second

// endAll ends the programs that are not over, with what they have started, and returns when all
// have ended. It does not wait for output that nobody takes, or that a process holds open that has
// left its group. The number of a program that is over may be another one's.
func endAll(programs []*exec.Cmd, over []atomic.Bool, all <-chan struct{}) {
	for _, force := range []bool{false, true} {
		for k, p := range programs {
			if !over[k].Load() && (force || p.Cancel == nil || p.Cancel() != nil) {
				procgroup.End(p, force)
			}
		}
		select {
		case <-all:
			return
		case <-time.After(endTimeout):
		}
	}
}

// programError is the failure of a program as the error of the command.
func programError(node int, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &cli.StatusError{Node: node, Status: testbed.ExitStatus(err), How: exit.String()}
	}
	return fmt.Errorf("node %d: %w", node, err)
}
