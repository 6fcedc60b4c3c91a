package main

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
	exitDone    = 0
	exitFailed  = 1
	exitMisused = 2
)

// envLocal tells a process that all nodes are on this machine, and how many cores they share.
const envLocal = "RAWLANE_LOCAL"

// execute carries out a command line, and returns the exit status.
func execute(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
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
