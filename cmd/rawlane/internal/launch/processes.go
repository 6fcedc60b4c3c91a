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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
)

// InNamespaces runs this same verb once per node, each in a network namespace of its own, as if
// they were machines. Node 0's output is this command's.
func (p *ClusterFlags) InNamespaces(ctx context.Context, cmd *cobra.Command) error {
	if err := testbed.Reexec(); err != nil {
		return err
	}
	cores, err := p.Cores()
	if err != nil {
		return err
	}
	bed, err := testbed.New(testbed.Config{Nodes: p.Nodes, NICs: p.NICs, MTU: p.MTU})
	if err != nil {
		return err
	}
	defer func() { _ = bed.Close() }()
	var interfaces []string
	for nic := range p.NICs {
		interfaces = append(interfaces, testbed.Interface(nic))
	}
	programs := make([]*exec.Cmd, p.Nodes)
	for k := range programs {
		leave := []string{"mtu", "pin"}
		if k != 0 {
			leave = append(leave, "capture")
		}
		args := append(commandLine(cmd, leave...), "--interface="+strings.Join(interfaces, ","), "--node="+strconv.Itoa(k), "--link="+p.Kind)
		if cores != nil {
			args = append(args, "--pin="+strconv.Itoa(cores[k]))
		}
		c := exec.Command("/proc/self/exe", args...)
		c.Args[0] = os.Args[0]
		c.Env = append(ShareOfCores(p.Nodes), cli.EnvLocal+"="+strconv.Itoa(runtime.NumCPU()))
		c.Stderr = cmd.ErrOrStderr()
		if k == 0 {
			c.Stdout = cmd.OutOrStdout()
		}
		programs[k] = c
	}
	return RunAll(ctx, bed, programs, p.Grace)
}

// ShareOfCores is the environment for one of n Go programs on this machine. Each runs on its share
// of the cores at one time, one at least, unless the user has said otherwise: the threads of a
// program that has more compete with those of the others.
func ShareOfCores(n int) []string {
	const variable = "GOMAXPROCS"
	env := os.Environ()
	if os.Getenv(variable) == "" {
		env = append(env, variable+"="+strconv.Itoa(max(1, runtime.NumCPU()/n)))
	}
	return env
}

// commandLine is the verb and the flags that cmd was given, but for some.
func commandLine(cmd *cobra.Command, but ...string) []string {
	words := strings.Fields(cmd.CommandPath())[1:]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(but, f.Name) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	return words
}

// RunAll starts program k on node k, and returns when all have ended: by themselves, or because one
// failed, after a grace, or at once when the user's context ended. A program that fails is expected
// to have said why; its exit status is the command's.
func RunAll(user context.Context, bed *testbed.Bed, programs []*exec.Cmd, grace time.Duration) error {
	ctx, cancel := context.WithCancelCause(user)
	defer cancel(nil)
	var running sync.WaitGroup
	for k, c := range programs {
		OwnGroup(c)
		if err := bed.Node(k).Start(c); err != nil {
			cancel(fmt.Errorf("start node %d: %w", k, err))
			break
		}
		running.Go(func() {
			if err := c.Wait(); err != nil {
				cancel(programError(k, err))
			}
		})
	}
	ended := make(chan struct{})
	go func() { running.Wait(); close(ended) }() // ends when the programs have
	select {
	case <-ended:
	case <-ctx.Done():
		select {
		case <-ended:
			return context.Cause(ctx)
		case <-time.After(grace):
		case <-user.Done():
		}
		endAll(programs, ended)
	}
	return context.Cause(ctx)
}

// EndTimeout is how long programs that are asked to end may take.
const EndTimeout = 2 * time.Second

// endAll ends programs, and returns when they have.
func endAll(programs []*exec.Cmd, ended <-chan struct{}) {
	for _, c := range programs {
		EndGroup(c, false)
	}
	select {
	case <-ended:
		return
	case <-time.After(EndTimeout):
	}
	for _, c := range programs {
		EndGroup(c, true)
	}
	<-ended
}

// programError is a program's failure as the command's own.
func programError(node int, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &cli.StatusError{Node: node, Status: exit.ExitCode()}
	}
	return fmt.Errorf("node %d: %w", node, err)
}
