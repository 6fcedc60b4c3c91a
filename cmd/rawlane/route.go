package main

import "github.com/spf13/cobra"

// routeVerbs is what can be done about routes, in the order of the help.
var routeVerbs = []func() *cobra.Command{
	newRouteCheckCommand,
	newRouteShowCommand,
	newRouteDiffCommand,
	newRouteVLANsCommand,
	newRouteOptimiseCommand,
	newRouteApplyCommand,
	newRouteStatusCommand,
	newRouteLoadCommand,
	newRouteDumpCommand,
	newRouteControlCommand,
	newRouteRollbackCommand,
	newRouteCountersCommand,
	newRouteLogCommand,
}

func newRouteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route VERB",
		Short: "Check, show, compare and apply plans of which VLAN leads where",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return misuse("which? (%s)", verbNames(cmd))
		},
	}
	for _, verb := range routeVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
