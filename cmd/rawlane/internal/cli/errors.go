package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a command line that cannot be carried out, whatever the machine: exit status 2.
type usageError struct{ error }

func Misuse(format string, args ...any) error { return AsMisuse(fmt.Errorf(format, args...)) }

// AsMisuse makes a usage error of err.
func AsMisuse(err error) error { return &usageError{err} }

// Unwrap returns what was wrong.
func (e *usageError) Unwrap() error { return e.error }

// StatusError ends the command with the status of a program that it ran and that has said why
// itself.
type StatusError struct{ Node, Status int }

func (e *StatusError) Error() string { return fmt.Sprintf("node %d: exit status %d", e.Node, e.Status) }

// NoArguments refuses arguments with a usage error.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Misuse("unexpected argument %q", args[0])
	}
	return nil
}
