// Command rawlane shows, measures and looks after messaging over raw Ethernet. Run it without arguments for
// its verbs.
//
// Exit status: 0 if the work was done, 1 if it failed, 2 if the command line was wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Exit statuses.
const (
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 2
)

// run is the whole command but for the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	verb, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var status *statusError
	if errors.As(err, &status) {
		return status.status
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		if os.Getenv(envLocal) != "" {
			return exitFailed // who started this process has ended it, and says why
		}
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "%s: %v\n", verb.CommandPath(), err)
	var usage *usageError
	if errors.As(err, &usage) {
		more := "for the flags"
		if verb.HasAvailableSubCommands() {
			more = "for a list"
		}
		fmt.Fprintf(stderr, "Usage: %s\nRun '%s --help' %s.\n", verb.UseLine(), verb.CommandPath(), more)
		return exitMisused
	}
	return exitFailed
}

// usageError is a command line that cannot be carried out, whatever the machine: exit status 2.
type usageError struct{ error }

func misuse(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// Unwrap returns what was wrong.
func (e *usageError) Unwrap() error { return e.error }

// statusError ends the command with the status of a program that it ran and that has said why itself.
type statusError struct{ node, status int }

func (e *statusError) Error() string { return fmt.Sprintf("node %d: exit status %d", e.node, e.status) }

// noArguments refuses arguments with a usage error.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse("unexpected argument %q", args[0])
	}
	return nil
}
