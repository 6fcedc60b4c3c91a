package route

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

func newDumpCommand() *cobra.Command {
	var o oneManager
	cmd := &cobra.Command{
		Use:   "dump [--manager ADDRESS]",
		Short: "Print a manager's plan as a file",
		Long: `Prints the plan that a node's manager has, with the operator's pairs in it, as "route load" and
"route apply" take it. What programs and failovers want for the moment is not in it: "route show
--manager" shows that.`,
		Args: cli.NoArguments,
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
				return writeDump(cmd.OutOrStdout(), p)
			})
		},
	}
	o.register(cmd.Flags())
	return cmd
}

// writeDump writes a plan as a file. The manager knows a network file by its name alone, so a
// comment says where to put it.
func writeDump(out io.Writer, p *plan.Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if p.Topology != "" && !topology.IsSpec(p.Topology) {
		_, err := fmt.Fprintf(out, "# Its network is in a file, %s, which has to be beside this one: "+
			"it is looked for from there.\n", p.Topology)
		if err != nil {
			return err
		}
	}
	_, err := p.WriteTo(out)
	return err
}

// dumpedPlan returns the plan of a table with the operator's pairs in it.
func dumpedPlan(t *api.Table) (*plan.Plan, error) {
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
	return t.Plan.With(changes)
}
