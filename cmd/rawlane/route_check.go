package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/vlan"
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
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", args[0], planSummary(p))
			return err
		},
	}
}

// oneFile wants the name of one file as the only argument.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return misuse("want one plan's file")
	}
	return nil
}

// readPlan reads a plan from a file.
func readPlan(file string) (*vlan.Plan, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return vlan.ParsePlan(file, f)
}

// planSummary is a plan in a line: "16 nodes, VIDs 1, 2, 3, 4, 120 pairs (6 of them listed)".
func planSummary(p *vlan.Plan) string {
	n := len(p.Nodes)
	return fmt.Sprintf("%d nodes, VIDs %s, %d pairs (%d of them listed)", n, strings.Trim(fmt.Sprint(p.VIDs), "[]"), n*(n-1)/2, len(p.Pairs))
}
