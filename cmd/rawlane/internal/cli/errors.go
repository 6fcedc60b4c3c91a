package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

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
