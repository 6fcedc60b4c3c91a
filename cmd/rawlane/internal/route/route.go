// Package route is the verbs that check, show, compute, compare and apply plans of VLAN routes.
package route

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

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

func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route VERB",
		Short: "Check, show, compare and apply plans of which VLAN leads where",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.Misuse("which? (%s)", cli.VerbNames(cmd))
		},
	}
	for _, verb := range routeVerbs {
		cmd.AddCommand(verb())
	}
	return cmd
}
