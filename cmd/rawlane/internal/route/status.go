package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
)

func newStatusCommand() *cobra.Command {
	var m managerFlags
	cmd := &cobra.Command{
		Use:   "status --managers FILE|LIST",
		Short: "Say which plan each node has, and whether it is the same",
		Long: `Prints which plan each node's manager has, since which version of its routes, and how many of its
pairs are not as the plan says. Equal plans have one id, on all nodes; "route check" says that of a
file. If some node does not answer, or has another plan than the rest, it exits with 1.

Nodes that have different plans send by different VIDs, and switches flood what they send. To mend
it, apply a plan to all of them:

  rawlane route status --managers managers.txt
  rawlane route dump --manager unix:/run/a.sock > plan.yaml     # one that has the right one
  rawlane route apply plan.yaml --managers managers.txt`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.askAll(func(clients []*manager.Client) error {
				ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
				defer cancel()
				s := coordinator.Survey(ctx, clients)
				printed := cli.Write(cmd.OutOrStdout(), m.json, s, func(w io.Writer) { writeStatus(w, s) })
				return errors.Join(printed, s.Err())
			})
		},
	}
	m.all(cmd)
	jsonFlag(cmd, &m.json)
	return cmd
}

func writeStatus(out io.Writer, s *coordinator.Status) {
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# Manager\tnode\tplan\tsince version\tnot by plan\tprograms\twhy\n")
		for _, n := range s.Nodes {
			if n.Error != "" {
				fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\tno answer\n", n.Manager)
				continue
			}
			why := cmp.Or(n.Reason, "-")
			if n.Prepared != "" {
				why += "; another change is prepared"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%v\t%d\t%d\t%s\n", n.Manager, cmp.Or(n.Name, n.MAC.String()),
				cmp.Or(n.PlanID, "none"), n.PlanVersion, n.Pairs, n.Programs, why)
		}
	})
}
