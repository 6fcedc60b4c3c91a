package main

import "github.com/spf13/cobra"

// simVerbs is what can be simulated, in the order of the help.
var simVerbs = []func() *cobra.Command{
	newSimVBFTCommand,
}

func newSimCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim VERB",
		Short: "Run experiments on networks that are not there, in virtual time",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse("which? (%s)", verbNames(cmd))
		},
	}
	for _, verb := range simVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
