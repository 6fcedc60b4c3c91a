package route

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newLoadCommand() *cobra.Command {
	var o oneManager
	var reason string
	cmd := &cobra.Command{
		Use:   "load PLAN [--manager ADDRESS]",
		Short: "Give one node's manager a plan",
		Long: `Makes a plan that of one node. The other ends of its pairs keep their VIDs until they are changed,
too: "rawlane route apply" changes all nodes.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, _, err := cli.ReadPlanAndNetwork(args[0])
			if err != nil {
				return err
			}
			return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
				changed, err := c.SetPlan(ctx, p, reason, 0)
				if err == nil {
					cmd.Printf("version %v, %s changed\n", changed.Version, cli.Count(changed.Routes, "route"))
				}
				return err
			})
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the manager's log")
	return cmd
}
