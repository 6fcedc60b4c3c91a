// Package barrier is the verbs that draw barrier schedules and trace barriers.
package barrier

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// barrierVerbs is what can be done about barriers, in the order of the help.
var barrierVerbs = []func() *cobra.Command{
	newBarrierShowCommand,
	newBarrierTraceCommand,
}

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "barrier VERB",
		Short: "Draw barrier algorithms, predict their time, see who is late",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Misuse("which? (%s)", cli.VerbNames(cmd))
		},
	}
	for _, verb := range barrierVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
