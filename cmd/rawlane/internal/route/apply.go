package route

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

// routeApply is what was asked for of a group change.
type routeApply struct {
	allManagers
	options manager.ApplyOptions
	json    bool
}

func newRouteApplyCommand() *cobra.Command {
	a := &routeApply{options: manager.ApplyOptions{Lease: manager.DefaultLease}}
	cmd := &cobra.Command{
		Use:   "apply PLAN --managers FILE|LIST [flags]",
		Short: "Make a plan that of all nodes, at once",
		Long: `Has the managers of all nodes agree to a plan first, and then change to it, all at once, and says for how long the two ends
of a pair may have disagreed: for that long, switches flood what they send. If a manager refuses or cannot be asked, none
changes. If one is lost in between, the others go back; apply the plan again when it is up.

  rawlane route apply better.yaml --managers managers.txt
  rawlane route apply better.yaml --managers unix:/run/a.sock,unix:/run/b.sock`,
		Args: oneFile,
		RunE: a.run,
	}
	f := cmd.Flags()
	a.flags(f)
	f.StringVar(&a.options.Reason, "reason", "", "why, for the managers' logs")
	f.DurationVar(&a.options.Lease, "lease", a.options.Lease, "how long a manager that has agreed waits for the others")
	f.BoolVar(&a.options.Partial, "partial", false, "even if not all managers of nodes whose pairs change are given")
	f.BoolVar(&a.json, "json", false, "print one JSON object")
	return cmd
}

func (a *routeApply) run(cmd *cobra.Command, args []string) error {
	if a.options.Lease < time.Millisecond || a.options.Lease > manager.MaxLease {
		return cli.Misuse("--lease %v: want 1ms to %v", a.options.Lease, manager.MaxLease)
	}
	p, _, err := cli.ReadPlanAndNetwork(args[0])
	if err != nil {
		return err
	}
	clients, done, err := a.clients()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(cmd.Context(), a.options.Lease+askTimeout)
	defer cancel()
	return a.apply(ctx, cmd, clients, p)
}

// apply applies a plan and prints what became of it.
func (a *routeApply) apply(ctx context.Context, cmd *cobra.Command, clients []*manager.Client, p *vlan.Plan) error {
	report, err := manager.Apply(ctx, clients, p, a.options)
	if a.json {
		if encoded := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err == nil {
			err = encoded
		}
		return err
	}
	writeReport(cmd.OutOrStdout(), report)
	return err
}

func writeReport(out io.Writer, r *manager.Report) {
	fmt.Fprintf(out, "# plan %s\n", r.PlanID)
	fmt.Fprintf(out, "%-28s %-18s %-10s %7s  %s\n", "# Manager", "node", "state", "routes", "version")
	late := 0
	for _, n := range r.Nodes {
		name := n.Name
		switch {
		case n.MAC.IsZero():
			name = "-" // it did not say
		case name == "":
			name = n.MAC.String()
		}
		fmt.Fprintf(out, "%-28s %-18s %-10v %7d  %d\n", n.Manager, name, n.State, n.Routes, n.Version)
		late += n.Late
		if n.Warning != "" {
			fmt.Fprintf(out, "  warning: %s\n", n.Warning)
		}
	}
	if r.Pairs > 0 {
		fmt.Fprintf(out, "%s changed; the ends of one disagreed for %v at most (pair %s), and certainly for %v\n",
			cli.Count(r.Pairs, "pair"), r.DisagreedMost.Round(time.Microsecond), r.WorstPair, r.DisagreedLeast.Round(time.Microsecond))
	}
	if late > 0 {
		fmt.Fprintf(out, "%s had not said in time to send by the new routes\n", cli.Count(late, "program"))
	}
	for _, line := range disagreements(r) {
		fmt.Fprintln(out, line)
	}
}

// disagreements says which plans the nodes had before, if not all had the same.
func disagreements(r *manager.Report) (lines []string) {
	var plans []string
	had := make(map[string][]string)
	for _, n := range r.Nodes {
		if n.MAC.IsZero() {
			continue // it did not say
		}
		if had[n.PlanBefore] == nil {
			plans = append(plans, n.PlanBefore)
		}
		had[n.PlanBefore] = append(had[n.PlanBefore], cmp.Or(n.Name, n.MAC.String()))
	}
	if len(plans) < 2 {
		return nil
	}
	for _, p := range plans {
		lines = append(lines, fmt.Sprintf("before, they had different plans: %s: %s", cmp.Or(p, "none"), strings.Join(had[p], " ")))
	}
	return lines
}
