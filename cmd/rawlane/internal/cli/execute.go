package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit statuses. A command that a signal has ended exits with ExitSignal and the signal's number,
// as a shell tells it: 130 for an interrupt.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitMisused = 2
	ExitSignal  = 128
)

// SameSignal is how long signals that follow the first one are taken for the same: in a user
// namespace a terminal's comes twice, from the terminal and from the process outside.
const SameSignal = 300 * time.Millisecond

// SignalError is the cause of a context that a signal has ended. It is context.Canceled.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return "interrupted (" + e.Signal.String() + ")" }

// Is makes errors.Is(err, context.Canceled) hold.
func (e *SignalError) Is(target error) bool { return target == context.Canceled }

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
	helped := checkHelp(root, stdout)
	verb, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = *helped
	}
	if err == nil {
		return ExitDone
	}
	return report(ctx, verb, err, stderr)
}

// checkHelp keeps the error of writing help, which cobra has no way to return.
func checkHelp(root *cobra.Command, stdout io.Writer) *error {
	var err error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		root.SetOut(&text)
		help(cmd, args)
		root.SetOut(stdout)
		_, err = stdout.Write(text.Bytes())
	})
	return &err
}

// report prints an error, and returns the exit status that goes with it.
func report(ctx context.Context, verb *cobra.Command, err error, stderr io.Writer) int {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Status
	}
	if isBrokenPipe(err) {
		return ExitSignal + int(syscall.SIGPIPE) // the reader has had enough, as head has
	}
	failed := ExitFailed
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		if os.Getenv(EnvLocal) != "" {
			return ExitFailed // the parent process ended it, and reports the reason
		}
		err = errors.New("interrupted")
		var signal *SignalError
		if errors.As(context.Cause(ctx), &signal) {
			failed = ExitSignal + int(signal.Signal)
		}
	}
	text := strings.TrimPrefix(err.Error(), verb.Name()+": ") // a package's name may be the command's
	fmt.Fprintf(stderr, "%s: %s\n", verb.CommandPath(), Printable(text))
	var usage *usageError
	if errors.As(err, &usage) {
		more := "for the flags"
		if verb.HasAvailableSubCommands() {
			more = "for a list"
		}
		fmt.Fprintf(stderr, "Usage: %s\nRun '%s --help' %s.\n", verb.UseLine(), verb.CommandPath(), more)
		return ExitMisused
	}
	return failed
}

// isBrokenPipe says whether nobody reads a file that the command writes, its output above all. A
// connection whose other end is gone is a net.OpError: a failure like others.
func isBrokenPipe(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && errors.Is(file, syscall.EPIPE)
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
type StatusError struct {
	Node, Status int
	How          string // "exit status 3", "signal: segmentation fault"
}

func (e *StatusError) Error() string { return fmt.Sprintf("node %d: %s", e.Node, e.How) }

// NoArguments refuses arguments with a usage error.
func NoArguments(cmd *cobra.Command, args []string) error { return Arguments(0, 0, "")(cmd, args) }

// Arguments refuses fewer arguments with a usage error that says what is wanted, as it does where
// one of these is empty, and more.
func Arguments(least, most int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least || slices.Contains(args[:least], ""):
			return Misuse("%s", want)
		case len(args) > most:
			return Misuse("unexpected argument %q", args[most])
		}
		return nil
	}
}
