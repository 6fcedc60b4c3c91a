package route

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

const (
	maxMatrix = 64 // nodes in a matrix: what still fits a wide screen
	allNodes  = -1 // --node was not given
)

// routeShow is a plan to show, and its network if the plan names one.
type routeShow struct {
	file    string
	plan    *vlan.Plan
	network *vlan.Topology // or nil
	node    int            // or allNodes
}

func newRouteShowCommand() *cobra.Command {
	var node string
	var asJSON bool
	var o oneManager
	cmd := &cobra.Command{
		Use:   "show FILE|--manager ADDRESS [flags]",
		Short: "Show which VID each pair of nodes uses, and which pairs share a link",
		Long: `Prints a plan's VIDs as a matrix of pairs. If the plan names its topology, also the pairs that each link between switches
carries. With --node it prints the routes of one node, and why they are so. docs/routes.md describes plans, and the JSON.
With --manager it prints what that manager's node sends by, and by whose wish.

  rawlane route show examples/vbft16.yaml
  rawlane route show examples/vbft16.yaml --node 3
  rawlane route show --manager unix:/run/rawlane/manager.sock`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("manager") {
				return cli.NoArguments(cmd, args)
			}
			return oneFile(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return showTable(cmd.Context(), &o, asJSON, cmd.OutOrStdout())
			}
			s, err := newRouteShow(args[0], node)
			if err != nil {
				return err
			}
			return s.write(cmd.OutOrStdout(), asJSON)
		},
	}
	f := cmd.Flags()
	o.flags(f)
	f.StringVar(&node, "node", "", "show this node's routes alone: its number, name or address")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newRouteShow(file, node string) (*routeShow, error) {
	p, network, err := cli.ReadPlanAndNetwork(file)
	if err != nil {
		return nil, err
	}
	s := &routeShow{file: file, plan: p, network: network, node: allNodes}
	if node != "" {
		if s.node, err = p.FindNode(node); err != nil {
			return nil, cli.Misuse("--node: %v", err)
		}
	}
	return s, nil
}

func (s *routeShow) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return s.writeJSON(out)
	}
	var b strings.Builder
	switch {
	case s.node != allNodes:
		s.writeNode(&b)
	default:
		s.writeMatrix(&b)
	}
	if s.network != nil {
		if err := s.writeLinks(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeMatrix writes the VID of each pair of nodes.
func (s *routeShow) writeMatrix(b *strings.Builder) {
	p := s.plan
	fmt.Fprintf(b, "# %s: %s\n", s.file, planSummary(p))
	if len(p.Nodes) > maxMatrix {
		fmt.Fprintf(b, "# too many for a matrix: see the routes of one node with --node, or all pairs with --json\n")
		return
	}
	width := max(len(fmt.Sprint(len(p.Nodes)-1)), len(fmt.Sprint(slices.Max(p.VIDs))))
	fmt.Fprintf(b, "#%*s", width, "")
	for column := range p.Nodes {
		fmt.Fprintf(b, " %*d", width, column)
	}
	b.WriteString("\n")
	for row := range p.Nodes {
		fmt.Fprintf(b, " %*d", width, row)
		for column := range p.Nodes {
			if row == column {
				fmt.Fprintf(b, " %*s", width, ".")
			} else {
				fmt.Fprintf(b, " %*d", width, p.PairVID(row, column))
			}
		}
		b.WriteString("\n")
	}
}

// writeNode writes the routes of one node.
func (s *routeShow) writeNode(b *strings.Builder) {
	own := s.plan.Nodes[s.node]
	fmt.Fprintf(b, "# node %d, %s: PCP %d\n", s.node, stationName(own), s.plan.PCP)
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "# To\tAddress\tVID\tWhy\n")
	for other, station := range s.plan.Nodes {
		if other != s.node {
			fmt.Fprintf(table, "%s\t%v\t%d\t%s\n", nodeLabel(other, station), station.MAC, s.plan.PairVID(s.node, other), s.why(other))
		}
	}
	fmt.Fprintf(table, "others\t%v\t%d\tits own default\n", transport.Broadcast, own.VID)
	_ = table.Flush() // a strings.Builder takes everything
}

// why says where the VID of a pair comes from.
func (s *routeShow) why(other int) string {
	decider := s.plan.Decider(s.node, other)
	switch _, listed := s.plan.Pairs[vlan.PairOf(s.node, other)]; {
	case listed:
		return "listed"
	case decider == s.node:
		return "its own default"
	}
	return fmt.Sprintf("default of %d", decider)
}

func nodeLabel(node int, s vlan.Station) string {
	if s.Name == "" {
		return fmt.Sprint(node)
	}
	return fmt.Sprintf("%d %s", node, s.Name)
}
