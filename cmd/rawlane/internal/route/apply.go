package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/coordinator"
	"github.com/rawlane/rawlane/vlan/plan"
)

// applyVerb gives all nodes a plan at once: the verbs apply and rollback.
type applyVerb struct {
	managerFlags
	options coordinator.ApplyOptions
}

func newApplyCommand() *cobra.Command {
	a := new(applyVerb)
	cmd := &cobra.Command{
		Use:   "apply PLAN --managers FILE|LIST [flags]",
		Short: "Make a plan that of all nodes, at once",
		Long: `Has the managers of all nodes agree to a plan first, and then change to it, all at once: while the
two ends of a pair disagree, switches flood what they send. If a manager refuses or cannot be asked,
none changes. If one is lost in between, the others go back; apply the plan again when it is up.

  rawlane route apply better.yaml --managers managers.txt
  rawlane route apply better.yaml --managers unix:/run/a.sock,unix:/run/b.sock`,
		Args: oneFile,
		RunE: a.run,
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&a.options.Lease, "lease", a.options.Lease, "how long a manager that has agreed waits for the others")
	return cmd
}

func newRollbackCommand() *cobra.Command {
	a := &applyVerb{options: coordinator.ApplyOptions{Reason: "rollback", Rollback: true}}
	cmd := &cobra.Command{
		Use:   "rollback --managers FILE|LIST [flags]",
		Short: "Go back to the plan before, on all nodes at once",
		Long: fmt.Sprintf(`Applies the plan that all nodes had before the present one, as "route apply"
does. Managers keep the last %d plans. A second rollback goes back one further.`, api.MaxHistory),
		Args: cli.NoArguments,
		RunE: a.run,
	}
	a.flags(cmd)
	return cmd
}

// flags defines what both verbs have.
func (a *applyVerb) flags(cmd *cobra.Command) {
	a.options.Lease = coordinator.DefaultLease
	a.all(cmd)
	cmd.Flags().BoolVar(&a.options.Partial, "partial", false,
		"even if not all managers of nodes whose pairs change are given, as while nodes are down")
	cmd.Flags().BoolVar(&a.options.DryRun, "dry-run", false, "say what would change, and change nothing")
	cmd.Flags().StringVar(&a.options.Reason, "reason", a.options.Reason, "why, for the managers' logs")
	jsonFlag(cmd, &a.json)
}

// run applies a plan and prints the report.
func (a *applyVerb) run(cmd *cobra.Command, args []string) (err error) {
	if a.options.Lease < time.Millisecond || a.options.Lease > coordinator.MaxLease {
		return cli.Misuse("--lease %v: want 1ms to %v", a.options.Lease, coordinator.MaxLease)
	}
	var p *plan.Plan
	if !a.options.Rollback {
		if p, _, err = cli.ReadPlanAndNetwork(cmd.Context(), args[0]); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.options.Lease+changeTimeout)
	defer cancel()
	return a.askAll(func(clients []*manager.Client) error {
		if a.options.Rollback {
			var until time.Time
			if p, until, err = coordinator.Previous(ctx, clients); err != nil {
				return err
			}
			if !a.json {
				cmd.Printf("the plan that was in force until %s: %s\n", until.Format(time.DateTime), planSummary(p))
			}
		}
		report, err := coordinator.Apply(ctx, clients, p, a.options)
		if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			if unchanged(report) {
				return context.Cause(cmd.Context()) // who had no time to answer would be said to give none
			}
			cmd.PrintErrln(cli.Printable(err.Error())) // the word that it was interrupted stands for it
		}
		printed := cli.Write(cmd.OutOrStdout(), a.json, report, func(w io.Writer) { writeReport(w, report) })
		return errors.Join(err, printed)
	})
}

// unchanged reports whether nothing has changed, nor may change.
func unchanged(r *coordinator.Report) bool {
	return !slices.ContainsFunc(r.Nodes, func(n coordinator.NodeOutcome) bool {
		return n.State != coordinator.NodeUnchanged
	})
}

func writeReport(out io.Writer, r *coordinator.Report) {
	fmt.Fprintf(out, "# plan %s\n", r.PlanID)
	if r.DryRun {
		fmt.Fprintln(out, "# dry run: nothing has changed; routes and pairs are those that would")
	}
	fmt.Fprintf(out, "%-28s %-18s %-10s %7s  %s\n", "# Manager", "node", "state", "routes", "version")
	late := 0
	for _, n := range r.Nodes {
		name, state := cmp.Or(n.Name, n.MAC.String()), n.State.String()
		if n.MAC.IsZero() {
			name, state = "-", "no answer"
		}
		version := "-" // its routes have not changed
		if n.Version != 0 {
			version = n.Version.String()
		}
		fmt.Fprintf(out, "%-28s %-18s %-10s %7d  %s\n", n.Manager, name, state, n.Routes, version)
		late += n.Late
		if n.Warning != "" {
			fmt.Fprintf(out, "  warning: %s\n", n.Warning)
		}
	}
	if r.Pairs > 0 {
		changed := "changed"
		if r.DryRun {
			changed = "would change"
		}
		fmt.Fprintf(out, "%s %s\n", cli.Count(r.Pairs, "pair"), changed)
	}
	if late > 0 {
		fmt.Fprintf(out, "%s had not said in time to send by the new routes\n", cli.Count(late, "program"))
	}
	writePlansBefore(out, r)
}

// writePlansBefore lists the nodes by their plan before the change, unless all had the same plan.
func writePlansBefore(out io.Writer, r *coordinator.Report) {
	var plans []string
	nodes := make(map[string][]string)
	for _, n := range r.Nodes {
		if n.MAC.IsZero() {
			continue
		}
		if nodes[n.PlanBefore] == nil {
			plans = append(plans, n.PlanBefore)
		}
		nodes[n.PlanBefore] = append(nodes[n.PlanBefore], cmp.Or(n.Name, n.MAC.String()))
	}
	if len(plans) < 2 {
		return
	}
	for _, p := range plans {
		fmt.Fprintf(out, "before, they had different plans: %s: %s\n", cmp.Or(p, "none"), strings.Join(nodes[p], " "))
	}
}
