package route

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager/api"

	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a plan, and that its network can carry it out",
		Long: `Reads a plan (docs/routes.md describes the file) and reports all that is wrong with it, by line. If
the plan names its topology, it also makes sure that the network has every VID and that every pair
of nodes is connected by its own.

  rawlane route check examples/vbft16.yaml`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, network, err := cli.ReadPlanAndNetwork(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: good: %s; %s; id %s\n",
				args[0], planSummary(p), networkSummary(p, network), api.PlanID(p))
			return err
		},
	}
}

// oneFile wants the file of one plan as the only argument.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Misuse("want one plan's file")
	}
	return nil
}

// planSummary is a plan in a line: "16 nodes, VIDs 1 2 3 4, 120 pairs, 6 of them listed".
func planSummary(p *plan.Plan) string {
	n := len(p.Nodes)
	return fmt.Sprintf("%s, VIDs %s, %s, %d of them listed", cli.Count(n, "node"),
		strings.Trim(fmt.Sprint(p.VIDs), "[]"), cli.Count(n*(n-1)/2, "pair"), len(p.Pairs))
}

// networkSummary is the result of checking a plan against its network, in words.
func networkSummary(p *plan.Plan, network *topology.Topology) string {
	if network == nil {
		return "it names no topology, so whether its VIDs connect them was not checked"
	}
	return fmt.Sprintf("each is connected by its VID on %s (%s, %s)", p.Topology,
		cli.Count(len(network.Switches), "switch"), cli.Count(len(network.Links), "link"))
}
