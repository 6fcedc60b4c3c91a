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

// verbNames lists the verbs below one: "a, b or c".
func verbNames(cmd *cobra.Command) string {
	text, all := "", cmd.Commands()
	for i, c := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			text += " or "
		default:
			text += ", "
		}
		text += c.Name()
	}
	return text
}
