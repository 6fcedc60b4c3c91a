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
