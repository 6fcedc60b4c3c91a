package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/vlan"
)

// routeShow is what was asked for of a plan.
type routeShow struct {
	oneManager
	node string // number, name or address; empty: all
	json bool
}

func newRouteShowCommand() *cobra.Command {
	s := new(routeShow)
	cmd := &cobra.Command{
		Use:   "show FILE|--manager ADDRESS [flags]",
		Short: "Show which VID each pair of nodes uses",
		Long: `Prints a plan's VIDs as a matrix of pairs, or with --node the routes of one node. With --manager it prints what that
manager's node sends by, and by whose wish.

  rawlane route show examples/vbft16.yaml
  rawlane route show examples/vbft16.yaml --node 3
  rawlane route show --manager unix:/run/rawlane/manager.sock`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("manager") {
				return noArguments(cmd, args)
			}
			return oneFile(cmd, args)
		},
		RunE: s.run,
	}
	f := cmd.Flags()
	s.flags(f)
	f.StringVar(&s.node, "node", "", "show the routes of this node alone: its number, name or address")
	f.BoolVar(&s.json, "json", false, "print one JSON object")
	return cmd
}

func (s *routeShow) run(cmd *cobra.Command, args []string) error {
	out := cmd.OutOrStdout()
	if len(args) == 0 {
		return showTable(cmd.Context(), &s.oneManager, s.json, out)
	}
	p, err := readPlan(args[0])
	if err != nil {
		return err
	}
	if s.node != "" {
		node, err := p.FindNode(s.node)
		if err != nil {
			return misuse("--node: %v", err)
		}
		return writeRoutes(out, p, node)
	}
	return writeMatrix(out, p)
}

// writeMatrix writes the VID of each pair of nodes.
func writeMatrix(out io.Writer, p *vlan.Plan) error {
	width := len(fmt.Sprint(len(p.Nodes) - 1))
	for _, vid := range p.VIDs {
		width = max(width, len(fmt.Sprint(vid)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%*s", width, "")
	for col := range p.Nodes {
		fmt.Fprintf(&b, " %*d", width, col)
	}
	b.WriteString("\n")
	for row := range p.Nodes {
		fmt.Fprintf(&b, "%*d", width, row)
		for col := range p.Nodes {
			if row == col {
				fmt.Fprintf(&b, " %*s", width, ".")
			} else {
				fmt.Fprintf(&b, " %*d", width, p.PairVID(row, col))
			}
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeRoutes writes what one node's table holds.
func writeRoutes(out io.Writer, p *vlan.Plan, node int) error {
	var b strings.Builder
	for _, r := range p.Routes(node) {
		fmt.Fprintf(&b, "%v\n", r)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
