// Package sim is the verbs that run experiments in virtual time.
package sim

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// simVerbs is what can be simulated, in the order of the help.
var simVerbs = []func() *cobra.Command{
	newSimVBFTCommand,
}

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim VERB",
		Short: "Run experiments on networks that are not there, in virtual time",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Misuse("which? (%s)", cli.VerbNames(cmd))
		},
	}
	for _, verb := range simVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
