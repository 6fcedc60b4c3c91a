package route

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newRouteCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a plan, and that its network can carry it out",
		Long: `Reads a plan (docs/routes.md describes the file) and reports all that is wrong with it, by line. If the plan names its
topology, it also makes sure that the network has every VID and that every pair of nodes is connected by its own.

  rawlane route check examples/vbft16.yaml`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, network, err := cli.ReadPlanAndNetwork(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: good: %s; %s; id %s\n", args[0], planSummary(p), networkSummary(p, network), manager.PlanID(p))
			return err
		},
	}
}

// networkSummary says what a check has found out about a plan's network.
func networkSummary(p *vlan.Plan, network *vlan.Topology) string {
	if network == nil {
		return "it names no topology, so whether its VIDs connect them was not checked"
	}
	return fmt.Sprintf("each is connected by its VID on %s (%s, %s)", p.Topology, cli.Count(len(network.Switches), "switch"), cli.Count(len(network.Links), "link"))
}
