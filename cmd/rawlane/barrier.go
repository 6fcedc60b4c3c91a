package main

import "github.com/spf13/cobra"

func newBarrierCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "barrier COMMAND",
		Short: "Barriers: draw a schedule, see who is late",
		Args:  noArguments,
		RunE:  func(*cobra.Command, []string) error { return misuse("which command? (show or trace)") },
	}
	cmd.AddCommand(newBarrierTraceCommand())
	return cmd
}
