package route

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/vlan"
)

func newRouteDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what changes from one plan to another",
		Long: `Compares what two plans mean, not how they are written: which pairs of nodes use another VID, which nodes have another
default, which come or go. Nodes are the same if their addresses are; their numbers are those in NEW.

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
			return writeDifference(cmd.OutOrStdout(), vlan.Diff(before, after))
		},
	}
}

func writeDifference(out io.Writer, d vlan.Difference) error {
	var b strings.Builder
	for _, s := range d.Removed {
		fmt.Fprintf(&b, "removed %s\n", stationName(s))
	}
	for _, s := range d.Added {
		fmt.Fprintf(&b, "added %s\n", stationName(s))
	}
	if d.OldPCP != d.NewPCP {
		fmt.Fprintf(&b, "pcp %d -> %d\n", d.OldPCP, d.NewPCP)
	}
	for _, c := range d.Defaults {
		fmt.Fprintf(&b, "default of %d: %d -> %d\n", c.Node, c.Old, c.New)
	}
	for _, c := range d.Pairs {
		fmt.Fprintf(&b, "pair %v: %d -> %d\n", c.Pair, c.From, c.To)
	}
	if d.Empty() {
		b.WriteString("no difference\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// stationName is a node's address, and its name if it has one.
func stationName(s vlan.Station) string {
	if s.Name == "" {
		return s.MAC.String()
	}
	return s.MAC.String() + " " + s.Name
}
