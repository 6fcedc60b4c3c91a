package route

import (
	"fmt"
	"io"
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
			p, network, err := cli.ReadPlanAndNetwork(cmd.Context(), args[0])
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
var oneFile = cli.Arguments(1, 1, "want one plan's file")

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

func newDiffCommand() *cobra.Command {
	var m managerFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | NEW --manager ADDRESS",
		Short: "Say what changes from one plan to another",
		Long: `Compares what two plans mean, not how they are written: which pairs of nodes use another VID, which
nodes have another default, which nodes and VIDs come or go. Nodes are the same if their addresses are; their
numbers are those in NEW. With --manager the old plan is the one that a node's manager has, with the
operator's pairs in it. "route apply --dry-run" asks all nodes.

  rawlane route diff examples/vbft16.yaml better.yaml
  rawlane route diff better.yaml --manager unix:/run/rawlane/manager.sock`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("manager") {
				return oneFile(cmd, args)
			}
			return twoFiles(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				if err := m.none(); err != nil {
					return err
				}
			}
			after, err := cli.ReadPlan(cmd.Context(), args[len(args)-1])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return request(cmd, &m, dumpedPlan, func(w io.Writer, running *plan.Plan) {
					writeDifference(w, plan.Diff(running, after))
				})
			}
			before, err := cli.ReadPlan(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			d := plan.Diff(before, after)
			return cli.Write(cmd.OutOrStdout(), false, d, func(w io.Writer) { writeDifference(w, d) })
		},
	}
	m.one(cmd)
	return cmd
}

var twoFiles = cli.Arguments(2, 2, "want two plans' files: the old one and the new one, or one and --manager")

func writeDifference(out io.Writer, d plan.Difference) {
	for _, n := range d.Removed {
		fmt.Fprintf(out, "removed %s\n", addressAndName(n))
	}
	for _, n := range d.Added {
		fmt.Fprintf(out, "added %s\n", addressAndName(n))
	}
	for _, vid := range d.RemovedVIDs {
		fmt.Fprintf(out, "removed vid %d\n", vid)
	}
	for _, vid := range d.AddedVIDs {
		fmt.Fprintf(out, "added vid %d\n", vid)
	}
	if d.OldPCP != d.NewPCP {
		fmt.Fprintf(out, "pcp %d -> %d\n", d.OldPCP, d.NewPCP)
	}
	for _, c := range d.Defaults {
		fmt.Fprintf(out, "default of %d: %d -> %d\n", c.Node, c.Old, c.New)
	}
	for _, c := range d.Pairs {
		fmt.Fprintf(out, "pair %v: %d -> %d\n", c.Pair, c.From, c.To)
	}
	if d.Empty() {
		fmt.Fprintln(out, "no difference")
	}
}

// addressAndName is a node's address, and its name if it has one.
func addressAndName(n plan.Node) string {
	if n.Name == "" {
		return n.MAC.String()
	}
	return n.MAC.String() + " " + n.Name
}
