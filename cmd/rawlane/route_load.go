package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager"
)

func newRouteLoadCommand() *cobra.Command {
	var o oneManager
	var reason string
	cmd := &cobra.Command{
		Use:   "load PLAN [--manager ADDRESS]",
		Short: "Give one node's manager a plan",
		Long: `Makes a plan that of one node. The other ends of its pairs keep their VIDs until they are changed, too: "rawlane route apply"
changes all nodes.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
				changed, err := c.SetPlan(ctx, p, reason, 0)
				if err == nil {
					cmd.Printf("version %d, %d routes changed\n", changed.Version, changed.Routes)
				}
				return err
			})
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the manager's log")
	return cmd
}

func newRouteDumpCommand() *cobra.Command {
	var o oneManager
	cmd := &cobra.Command{
		Use:   "dump [--manager ADDRESS]",
		Short: "Print a manager's plan as a file",
		Long: `Prints the plan that a node's manager has, with the operator's pairs in it, as "route load" and "route apply" take it. What programs
and failovers want for the moment is not in it: "route show --manager" shows that.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
				t, err := c.Table(ctx)
				if err != nil {
					return err
				}
				p, err := dumpedPlan(t)
				if err != nil {
					return err
				}
				_, err = p.WriteTo(cmd.OutOrStdout())
				return err
			})
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

// dumpedPlan is the plan of a table, with the operator's pairs in it.
func dumpedPlan(t *manager.Table) (*vlan.Plan, error) {
	if t.Plan == nil {
		return nil, fmt.Errorf("node %v: %w (give it one: rawlane route load)", t.MAC, manager.ErrNoPlan)
	}
	changes := make(map[vlan.Pair]transport.VID)
	for _, pair := range t.Pairs {
		if pair.By != "operator" {
			continue
		}
		a, okA := t.Plan.NodeOf(pair.A)
		b, okB := t.Plan.NodeOf(pair.B)
		if !okA || !okB {
			return nil, fmt.Errorf("node %v: its table has a pair of nodes that its plan has not: %v-%v", t.MAC, pair.A, pair.B)
		}
		changes[vlan.PairOf(a, b)] = pair.VID
	}
	return t.Plan.With(changes)
}

// showTable prints what a manager's node sends by.
func showTable(ctx context.Context, o *oneManager, asJSON bool, out io.Writer) error {
	return o.ask(ctx, func(ctx context.Context, c *manager.Client) error {
		t, err := c.Table(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(out).Encode(t)
		}
		writeTable(out, t)
		return nil
	})
}

func writeTable(out io.Writer, t *manager.Table) {
	fmt.Fprintf(out, "node %v %s: version %d, plan since version %d, %d programs\n", t.MAC, t.Name, t.Version, t.PlanVersion, len(t.Sessions))
	whose := make(map[transport.MAC]manager.Pair)
	for _, p := range t.Pairs {
		if !p.Covered {
			whose[p.B] = p
		}
	}
	for _, r := range t.Routes {
		name := ""
		if t.Plan != nil {
			if n, ok := t.Plan.NodeOf(r.Dst); ok {
				name = t.Plan.Nodes[n].Name
			}
		}
		if r.Dst == transport.Broadcast {
			name = "others"
		}
		why := "plan"
		if p, ok := whose[r.Dst]; ok {
			why = strings.TrimSuffix(p.By+": "+p.Reason, ": ")
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d PCP %d  %s\n", r.Dst, name, r.VID, r.PCP, why)
	}
	if t.Prepared != nil {
		fmt.Fprintf(out, "a change is prepared: %s, until %s\n", t.Prepared.ID, t.Prepared.Expires.Format(time.RFC3339))
	}
}

func newRouteLogCommand() *cobra.Command {
	var o oneManager
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "log [--manager ADDRESS]",
		Short: "Say what changed a node's routes, and why",
		Long:  fmt.Sprintf("Prints a manager's latest %d changes since it started: when, what, by whom and why.", manager.MaxJournal),
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.ask(cmd.Context(), func(ctx context.Context, c *manager.Client) error {
				l, err := c.Log(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(l)
				}
				writeLog(cmd.OutOrStdout(), l)
				return nil
			})
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writeLog(out io.Writer, l manager.Log) {
	for _, e := range l.Entries {
		fmt.Fprintf(out, "%s version %d: %s by %s: %d routes", e.Time.Format("2006-01-02 15:04:05.000"), e.Version, e.Act, e.By, e.Count)
		if e.Reason != "" {
			fmt.Fprintf(out, ": %s", e.Reason)
		}
		fmt.Fprintln(out)
		for _, r := range e.Routes {
			fmt.Fprintf(out, "  %v by VID %d\n", r.Dst, r.VID)
		}
	}
}
