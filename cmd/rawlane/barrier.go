package main

import "github.com/spf13/cobra"

// barrierVerbs is what can be done about barriers, in the order of the help.
var barrierVerbs = []func() *cobra.Command{
	newBarrierShowCommand,
	newBarrierTraceCommand,
}

func newBarrierCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "barrier VERB",
		Short: "Draw barrier algorithms, predict their time, see who is late",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse("which? (%s)", verbNames(cmd))
		},
	}
	for _, verb := range barrierVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
