package route

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan/plan"
)

func newDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what changes from one plan to another",
		Long: `Compares what two plans mean, not how they are written: which pairs of nodes use another VID, which
nodes have another default, which come or go. Nodes are the same if their addresses are; their
numbers are those in NEW.

  rawlane route diff examples/vbft16.yaml better.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Misuse("want two plans' files: the old one and the new one")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err := cli.ReadPlan(args[0])
			if err != nil {
				return err
			}
			after, err := cli.ReadPlan(args[1])
			if err != nil {
				return err
			}
			d := plan.Diff(before, after)
			return cli.Write(cmd.OutOrStdout(), false, d, func(w io.Writer) { writeDifference(w, d) })
		},
	}
}

func writeDifference(out io.Writer, d plan.Difference) {
	for _, n := range d.Removed {
		fmt.Fprintf(out, "removed %s\n", addressAndName(n))
	}
	for _, n := range d.Added {
		fmt.Fprintf(out, "added %s\n", addressAndName(n))
	}
	if d.OldPCP != d.NewPCP {
		fmt.Fprintf(out, "pcp %d -> %d\n", d.OldPCP, d.NewPCP)
	}
	for _, c := range d.Defaults {
		fmt.Fprintf(out, "default of %d: %d -> %d\n", c.Node, c.Old, c.New)
	}
	for _, c := range d.Pairs {
		fmt.Fprintf(out, "pair %v: %d -> %d\n", c.Pair, c.From, c.To)
	}
	if d.Empty() {
		fmt.Fprintln(out, "no difference")
	}
}

// addressAndName is a node's address, and its name if it has one.
func addressAndName(n plan.Node) string {
	if n.Name == "" {
		return n.MAC.String()
	}
	return n.MAC.String() + " " + n.Name
}
