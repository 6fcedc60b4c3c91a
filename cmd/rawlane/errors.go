package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a command line that cannot be carried out, whatever the machine: exit status 2.
type usageError struct{ error }

func misuse(format string, args ...any) error { return asMisuse(fmt.Errorf(format, args...)) }

// asMisuse makes a usage error of err.
func asMisuse(err error) error { return &usageError{err} }

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
