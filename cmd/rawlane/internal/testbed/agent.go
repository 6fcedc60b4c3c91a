package testbed

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/procgroup"
	"github.com/rawlane/rawlane/internal/testbed"
)

// agentGrace is how long a program, and what it has started, may take to end after SIGTERM, where
// nobody listens to it any more.
const agentGrace = 5 * time.Second

// agentGreeting is the first line that an agent prints: its connection is there.
const agentGreeting = "rawlane agent"

// NewAgentCommand returns the verb that "run --hosts" runs on each host.
func NewAgentCommand() *cobra.Command {
	var env []string
	var share, pin int
	var folder string
	var stdin bool
	cmd := &cobra.Command{
		Use:    "agent [flags] PROGRAM [ARGUMENT...]",
		Short:  "Run a program until it ends, or nobody reads its output any more",
		Hidden: true,
		Args:   cli.Arguments(1, 1<<16, "which program?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := io.WriteString(os.Stdout, agentGreeting+"\n"); err != nil {
				return err
			}
			p := exec.Command(args[0], args[1:]...)
			p.Env = append(launch.ShareOfCores(max(share, 1)), env...)
			p.Stdout, p.Stderr = os.Stdout, os.Stderr // its own: nothing is copied
			var input io.Reader = os.Stdin
			if stdin {
				p.Stdin, input = os.Stdin, nil
			}
			// The program ends with this thread, and so with this process.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if pin >= 0 {
				if err := launch.PinThread(pin, max(share, pin+1)); err != nil {
					return err
				}
			}
			return runUntilHangup(cmd.Context(), p, input, folder)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "NAME=VALUE of its environment")
	cmd.Flags().BoolVar(&stdin, "stdin", false, "give the program the standard input; else a byte of it ends that")
	cmd.Flags().StringVar(&folder, "folder", "", "what to remove if nobody reads any more")
	cmd.Flags().IntVar(&share, "share", 1, "how many programs share the cores of this host")
	cmd.Flags().IntVar(&pin, "pin", -1, "which share of the cores is the program's; -1: all")
	return cmd
}

var (
	errHangup = errors.New("nobody reads the output any more")
	errAsked  = errors.New("the launcher asks for it")
)

// runUntilHangup runs a program in a process group of its own. A launcher that dies, or a
// connection to it that breaks, shows in the output, which nobody reads any more: the program's
// group is ended then, as when the context ends, as by a signal, and the folder removed: maybe
// nobody else does it. A launcher that is there asks by a byte of the input, if there is one: it
// gets what is printed until the group has ended, and removes the folder itself.
// The caller stays on its thread.
func runUntilHangup(ctx context.Context, p *exec.Cmd, input io.Reader, folder string) error {
	out := os.Stdout
	procgroup.Own(p)
	procgroup.DieWithThread(p)
	leave, err := enter(folder)
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		leave(false)
		return err
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // until nobody reads; the process ends with it
		waitHangup(out)
		cancel(errHangup)
	}()
	if input != nil {
		go func() { // until the launcher asks; the process ends with it
			if n, _ := io.ReadFull(input, make([]byte, 1)); n > 0 { // its end says nothing
				cancel(errAsked)
			}
		}()
	}
	over := make(chan struct{})
	go func() { // until the program has ended, or its group where that is ended
		defer close(over)
		select {
		case <-ended:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			procgroup.EndWithin(p, agentGrace)
		}
	}()
	err = p.Wait()
	if isHungUp(out) { // why the program has ended, it may be
		cancel(errHangup)
	}
	close(ended)
	<-over
	leave(ctx.Err() != nil && (!errors.Is(context.Cause(ctx), errAsked) || isHungUp(out)))
	if err != nil {
		return &cli.StatusError{Status: testbed.ExitStatus(err), How: err.Error()}
	}
	return nil
}

// enter says in the folder, by a file of this agent's, that it is used. leave takes that back, and
// removes the folder if that is asked for and no other agent uses it.
func enter(folder string) (leave func(remove bool), err error) {
	if folder == "" {
		return func(bool) {}, nil
	}
	name := filepath.Join(folder, "agent."+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return nil, err
	}
	return func(remove bool) {
		_ = os.Remove(name) // with the folder, it may be
		if others, _ := filepath.Glob(filepath.Join(folder, "agent.*")); remove && len(others) == 0 {
			_ = os.RemoveAll(folder)
		}
	}, nil
}
