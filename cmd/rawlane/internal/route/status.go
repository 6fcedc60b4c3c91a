package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newRouteStatusCommand() *cobra.Command {
	var a allManagers
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status --managers FILE|LIST",
		Short: "Say which plan each node has, and whether it is the same",
		Long: `Prints which plan each node's manager has, since which version of its routes, and how many of its pairs are not as the plan says. Equal plans
have one id, on all nodes; "route check" says that of a file. If some node does not answer, or has another plan than the rest, it exits with 1.

Nodes that have different plans send by different VIDs, and switches flood what they send. To mend it, apply a plan to all of them:

  rawlane route status --managers managers.txt
  rawlane route dump --manager unix:/run/a.sock > plan.yaml     # one that has the right one
  rawlane route apply plan.yaml --managers managers.txt`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clients, done, err := a.clients()
			if err != nil {
				return err
			}
			defer done()
			ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
			defer cancel()
			s := manager.Survey(ctx, clients)
			if asJSON {
				return errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(s), s.Err())
			}
			return errors.Join(writeStatus(cmd.OutOrStdout(), s), s.Err())
		},
	}
	a.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writeStatus(out io.Writer, s *manager.Status) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "# Manager\tnode\tplan\tsince version\tnot by plan\tprograms\twhy\n")
	for _, n := range s.Nodes {
		if n.Error != "" {
			fmt.Fprintf(table, "%s\t-\t-\t-\t-\t-\tno answer\n", n.Manager)
			continue
		}
		why := cmp.Or(n.Reason, "-")
		if n.Prepared != "" {
			why += "; another change is prepared"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\n", n.Manager, cmp.Or(n.Name, n.MAC.String()), cmp.Or(n.PlanID, "none"), n.PlanVersion, n.Pairs, n.Programs, why)
	}
	return table.Flush()
}
