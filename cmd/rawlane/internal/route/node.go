package route

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func newLoadCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "load PLAN [--manager ADDRESS]",
		Short: "Give one node's manager a plan",
		Long: `Makes a plan that of one node. The other ends of its pairs keep their VIDs until they are changed,
too: "rawlane route apply" changes all nodes.`,
		Args: oneFile,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the manager's log")
	load := func(c *manager.Client, ctx context.Context) (changed api.Changed, err error) {
		p, _, err := cli.ReadPlanAndNetwork(ctx, cmd.Flags().Arg(0))
		if err != nil {
			return changed, err
		}
		return c.SetPlan(ctx, p, reason, 0)
	}
	return newRequest(cmd, &managerFlags{changes: true}, load, func(out io.Writer, changed api.Changed) {
		fmt.Fprintf(out, "version %v, %s changed\n", changed.Version, cli.Count(changed.Routes, "route"))
	})
}

func newLogCommand() *cobra.Command {
	m := new(managerFlags)
	cmd := &cobra.Command{
		Use:   "log [--manager ADDRESS]",
		Short: "Say what changed a node's routes, and why",
		Long: fmt.Sprintf("Prints a manager's latest %d changes since it started: when, what, by whom and why.",
			api.MaxLog),
		Args: cli.NoArguments,
	}
	cmd.Flags().BoolVar(&m.json, "json", false, jsonOfEach)
	return m.several(newRequest(cmd, m, func(c *manager.Client, ctx context.Context) (l nodeLog, err error) {
		if l.ofNode, err = m.nodeOf(ctx, c); err == nil {
			l.Log, err = c.Log(ctx)
		}
		return l, err
	}, writeLog))
}

// nodeLog is the log of a node's manager as JSON.
type nodeLog struct {
	ofNode
	api.Log
}

func writeLog(out io.Writer, l nodeLog) {
	for _, e := range l.Entries {
		fmt.Fprintf(out, "%s version %v: %s by %s: %s",
			e.Time.Format("2006-01-02 15:04:05.000"), e.Version, e.Act, e.By, cli.Count(e.Count, "route"))
		if e.Reason != "" {
			fmt.Fprintf(out, ": %s", e.Reason)
		}
		if e.From != "" {
			fmt.Fprintf(out, " (%s)", e.From)
		}
		fmt.Fprintln(out)
		for _, r := range e.Routes {
			fmt.Fprintf(out, "  %v by VID %d\n", r.Dst, r.VID)
		}
	}
}

func newCountersCommand() *cobra.Command {
	m := new(managerFlags)
	cmd := &cobra.Command{
		Use:   "counters [--manager ADDRESS]",
		Short: "Say what a node's programs have sent, to whom and by which VID",
		Long: `Prints the frames and bytes that the programs on a node have sent by their manager's routes since it
started: to each destination with each VID, and with each VID to all.`,
		Args: cli.NoArguments,
	}
	cmd.Flags().BoolVar(&m.json, "json", false, jsonOfEach)
	return m.several(newRequest(cmd, m, func(c *manager.Client, ctx context.Context) (n nodeCounters, err error) {
		if n.ofNode, err = m.nodeOf(ctx, c); err == nil {
			n.Counters, err = c.Counters(ctx)
		}
		return n, err
	}, writeCounters))
}

// nodeCounters are the counters of a node's manager as JSON.
type nodeCounters struct {
	ofNode
	api.Counters
}

func writeCounters(out io.Writer, c nodeCounters) {
	fmt.Fprintf(out, "%-17s %-12s %-8s %14s %16s\n", "# Destination", "node", "VID", "frames", "bytes")
	for _, n := range c.Nodes {
		name := n.Name
		if n.Dst == transport.Broadcast {
			name = "others"
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d %14d %16d\n", n.Dst, name, n.VID, n.Frames, n.Bytes)
	}
	for _, v := range c.VIDs {
		fmt.Fprintf(out, "%-17s %-12s VID %-4d %14d %16d\n", "all", "", v.VID, v.Frames, v.Bytes)
	}
	if c.Silent > 0 {
		fmt.Fprintf(out, "%s did not report in time: what is counted is of before\n", cli.Count(c.Silent, "program"))
	}
}

func newDumpCommand() *cobra.Command {
	return newRequest(&cobra.Command{
		Use:   "dump [--manager ADDRESS]",
		Short: "Print a manager's plan as a file",
		Long: `Prints the plan that a node's manager has, with the operator's pairs in it, as "route load" and
"route apply" take it. What programs and failovers want for the moment is not in it: "route show
--manager" shows that.`,
		Args: cli.NoArguments,
	}, new(managerFlags), dumpedPlan, writeDump)
}

// dumpedPlan returns the plan of a manager with the operator's pairs in it.
func dumpedPlan(c *manager.Client, ctx context.Context) (*plan.Plan, error) {
	t, err := c.Table(ctx)
	if err != nil {
		return nil, err
	}
	if t.Plan == nil {
		return nil, fmt.Errorf("node %v: %w (give it one: rawlane route load)", t.MAC, api.ErrNoPlan)
	}
	changes := make(map[plan.Pair]transport.VID)
	for _, pair := range t.Pairs {
		if pair.By != "operator" {
			continue
		}
		a, okA := t.Plan.NodeOf(pair.A)
		b, okB := t.Plan.NodeOf(pair.B)
		if !okA || !okB {
			return nil, fmt.Errorf("node %v: its table has a pair of nodes that its plan has not: %v-%v",
				t.MAC, pair.A, pair.B)
		}
		changes[plan.PairOf(a, b)] = pair.VID
	}
	p, err := t.Plan.With(changes)
	if err != nil {
		return nil, err
	}
	return p, p.Validate()
}

// writeDump writes a plan as a file. The manager knows a network file by its name alone, so a
// comment says where to put it.
func writeDump(out io.Writer, p *plan.Plan) {
	if p.Topology != "" && !topology.IsSpec(p.Topology) {
		fmt.Fprintf(out, "# Its network is in a file, %s, which has to be beside this one: "+
			"it is looked for from there.\n", p.Topology)
	}
	_, _ = p.WriteTo(out) // out is a buffer of Write, which takes everything
}

// writeTable writes the routes of a manager's node, and the source of each.
func writeTable(out io.Writer, t *api.Table) {
	fmt.Fprintf(out, "node %s: version %v, plan %s since version %v, %s\n",
		strings.TrimSpace(t.MAC.String()+" "+t.Name), t.Version, cmp.Or(t.PlanID, "none"), t.PlanVersion,
		cli.Count(len(t.Sessions), "program"))
	sources := make(map[transport.MAC]api.Pair)
	for _, p := range t.Pairs {
		if !p.Covered {
			sources[p.B] = p
		}
	}
	for _, r := range t.Routes {
		why := "plan"
		if p, ok := sources[r.Dst]; ok {
			why = strings.TrimSuffix(p.By+": "+p.Reason, ": ")
		}
		fmt.Fprintf(out, "%v %-12s VID %-4d PCP %d  %s\n", r.Dst, nameIn(t, r.Dst), r.VID, r.PCP, why)
	}
	if t.Prepared != nil {
		fmt.Fprintf(out, "a change is prepared: %s, until %s\n", t.Prepared.ID, t.Prepared.Expires.Format(time.RFC3339))
	}
}

// nameIn returns the name of a destination in a table's plan.
func nameIn(t *api.Table, dst transport.MAC) string {
	if dst == transport.Broadcast {
		return "others"
	}
	if t.Plan == nil {
		return ""
	}
	n, ok := t.Plan.NodeOf(dst)
	if !ok {
		return ""
	}
	return t.Plan.Nodes[n].Name
}
