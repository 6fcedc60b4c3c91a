// Package route is the verbs for plans of VLAN routes: check, show, compare and compute plans, and
// apply them to the managers of the nodes.
package route

import (
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// NewCommand returns the verb route.
func NewCommand() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "route VERB",
		Short: "Check, show, compare and apply plans of which VLAN leads where",
	}, "which?",
		newApplyCommand(),
		newCheckCommand(),
		newControlCommand(),
		newCountersCommand(),
		newDiffCommand(),
		newDumpCommand(),
		newLoadCommand(),
		newLogCommand(),
		newOptimiseCommand(),
		newRollbackCommand(),
		newShowCommand(),
		newStatusCommand(),
		newVLANsCommand(),
	)
}
