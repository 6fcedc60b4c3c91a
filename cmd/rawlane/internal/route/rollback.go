package route

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newRouteRollbackCommand() *cobra.Command {
	a := &routeApply{options: manager.ApplyOptions{Lease: manager.DefaultLease, Reason: "rollback"}}
	cmd := &cobra.Command{
		Use:   "rollback --managers FILE|LIST [flags]",
		Short: "Go back to the plan before, on all nodes at once",
		Long: fmt.Sprintf(`Applies the plan that all nodes had before the present one, as "route apply" does. Managers keep the last %d plans. It is a change as
any other: a second rollback undoes the first.`, manager.MaxHistory),
		Args: cli.NoArguments,
		RunE: a.rollback,
	}
	f := cmd.Flags()
	a.flags(f)
	f.StringVar(&a.options.Reason, "reason", a.options.Reason, "why, for the managers' logs")
	f.BoolVar(&a.json, "json", false, "print one JSON object")
	return cmd
}

func (a *routeApply) rollback(cmd *cobra.Command, _ []string) error {
	clients, done, err := a.clients()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(cmd.Context(), a.options.Lease+askTimeout)
	defer cancel()
	p, until, err := manager.Previous(ctx, clients)
	if err != nil {
		return err
	}
	if !a.json {
		cmd.Printf("the plan that was in force until %s: %s\n", until.Format(time.DateTime), planSummary(p))
	}
	return a.apply(ctx, cmd, clients, p)
}
