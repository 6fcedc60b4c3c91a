package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitMisused = 2
)

// EnvLocal tells a process that all nodes are on this machine, and how many cores they share.
const EnvLocal = "RAWLANE_LOCAL"

// Execute runs a command line and returns the exit status.
func Execute(
	ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	verb, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		if os.Getenv(EnvLocal) != "" {
			return ExitFailed // the parent process ended it, and reports the reason
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
		return ExitMisused
	}
	return ExitFailed
}

// usageError is a command line that no machine can carry out: exit status 2.
type usageError struct{ error }

// Misuse returns a usage error with the given text.
func Misuse(format string, args ...any) error { return AsMisuse(fmt.Errorf(format, args...)) }

// AsMisuse makes err a usage error.
func AsMisuse(err error) error { return &usageError{err} }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.error }

// StatusError is the failure of a program that the command ran on a node. The program has printed
// the reason; the command prints nothing more and exits with the program's status.
type StatusError struct{ Node, Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("node %d: exit status %d", e.Node, e.Status) }

// NoArguments refuses arguments with a usage error.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse("unexpected argument %q", args[0])
	}
	return nil
}

// Arguments refuses fewer or more arguments with a usage error that says what is wanted.
func Arguments(least, most int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return Misuse("%s", want)
		}
		return nil
	}
}
