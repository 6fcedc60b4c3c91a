package route

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

const (
	maxMatrix = 64 // nodes in a matrix: the most that fit a wide screen
	allNodes  = -1 // without --node
)

// shownPlan is a plan to show, with its network if the plan names one.
type shownPlan struct {
	file    string
	plan    *plan.Plan
	network *topology.Topology // or nil
	node    int                // or allNodes
}

func newShowCommand() *cobra.Command {
	var node string
	var m managerFlags
	cmd := &cobra.Command{
		Use:   "show FILE|--manager ADDRESS [flags]",
		Short: "Show which VID each pair of nodes uses, and which pairs share a link",
		Long: `Prints a plan's VIDs as a matrix of pairs. If the plan names its topology, also the pairs that each
link between switches carries. With --node it prints the routes of one node, and why they are so.
docs/routes.md describes plans, and the JSON. With --manager it prints what that manager's node
sends by, and by whose wish.

  rawlane route show examples/vbft16.yaml
  rawlane route show examples/vbft16.yaml --node 3
  rawlane route show --manager unix:/run/rawlane/manager.sock`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("manager") || cmd.Flags().Changed("managers") {
				return cli.NoArguments(cmd, args)
			}
			return oneFile(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				if node != "" {
					return cli.Misuse("--node: is for a plan's file (a manager has the routes of its own node alone)")
				}
				return request(cmd, &m, (*manager.Client).Table, writeTable)
			}
			if err := m.none(); err != nil {
				return err
			}
			s, err := readShownPlan(cmd.Context(), args[0], node)
			if err != nil {
				return err
			}
			return s.write(cmd.OutOrStdout(), m.json)
		},
	}
	m.one(cmd)
	m.several(cmd)
	cmd.Flags().StringVar(&node, "node", "", "show this node's routes alone: its number, name or address")
	jsonFlag(cmd, &m.json)
	return cmd
}

func readShownPlan(ctx context.Context, file, node string) (*shownPlan, error) {
	p, network, err := cli.ReadPlanAndNetwork(ctx, file)
	if err != nil {
		return nil, err
	}
	s := &shownPlan{file: file, plan: p, network: network, node: allNodes}
	if node != "" {
		if s.node, err = p.FindNode(node); err != nil {
			return nil, cli.Misuse("--node: %v", err)
		}
	}
	return s, nil
}

func (s *shownPlan) write(out io.Writer, asJSON bool) error {
	links, err := s.links()
	if err != nil {
		return err
	}
	return cli.Write(out, asJSON, s.result(links), func(w io.Writer) {
		if s.node != allNodes {
			s.writeNode(w)
		} else {
			s.writeMatrix(w)
		}
		if s.network != nil {
			s.writeLinks(w, links)
		}
	})
}

// writeMatrix writes the VID of each pair of nodes.
func (s *shownPlan) writeMatrix(out io.Writer) {
	p := s.plan
	fmt.Fprintf(out, "# %s: %s\n", s.file, planSummary(p))
	if len(p.Nodes) > maxMatrix {
		fmt.Fprintln(out, "# too many for a matrix: see the routes of one node with --node, or all pairs with --json")
		return
	}
	width := max(len(fmt.Sprint(len(p.Nodes)-1)), len(fmt.Sprint(slices.Max(p.VIDs))))
	fmt.Fprintf(out, "#%*s", width, "")
	for column := range p.Nodes {
		fmt.Fprintf(out, " %*d", width, column)
	}
	fmt.Fprintln(out)
	for row := range p.Nodes {
		fmt.Fprintf(out, " %*d", width, row)
		for column := range p.Nodes {
			if row == column {
				fmt.Fprintf(out, " %*s", width, ".")
			} else {
				fmt.Fprintf(out, " %*d", width, p.PairVID(row, column))
			}
		}
		fmt.Fprintln(out)
	}
}

// writeNode writes the routes of one node.
func (s *shownPlan) writeNode(out io.Writer) {
	own := s.plan.Nodes[s.node]
	fmt.Fprintf(out, "# node %d, %s: PCP %d\n", s.node, addressAndName(own), s.plan.PCP)
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# To\tAddress\tVID\tWhy\n")
		for other, n := range s.plan.Nodes {
			if other != s.node {
				label := strings.TrimSpace(fmt.Sprint(other, " ", n.Name))
				fmt.Fprintf(w, "%s\t%v\t%d\t%s\n", label, n.MAC, s.plan.PairVID(s.node, other), s.why(other))
			}
		}
		fmt.Fprintf(w, "others\t%v\t%d\tits own default\n", transport.Broadcast, own.VID)
	})
}

// why says where the VID of a pair comes from.
func (s *shownPlan) why(other int) string {
	decider := s.plan.Decider(s.node, other)
	switch _, listed := s.plan.Pairs[plan.PairOf(s.node, other)]; {
	case listed:
		return "listed"
	case decider == s.node:
		return "its own default"
	}
	return fmt.Sprintf("default of %d", decider)
}

// routeSchema is the version of routeResult as JSON. docs/routes.md describes it.
const routeSchema = 1

// routeResult is a plan as JSON.
type routeResult struct {
	Schema   int             `json:"schema"`
	File     string          `json:"file"`
	Topology string          `json:"topology,omitempty"`
	VIDs     []transport.VID `json:"vids"`
	PCP      transport.PCP   `json:"pcp"`
	Nodes    []routeNode     `json:"nodes"`
	Pairs    []routePair     `json:"pairs"`
	Links    []routeLink     `json:"links,omitempty"`
}

type routeNode struct {
	Node     int           `json:"node"`
	Name     string        `json:"name,omitempty"`
	MAC      transport.MAC `json:"mac"`
	VID      transport.VID `json:"vid"`
	Priority int           `json:"priority"`
}

type routePair struct {
	Pair   [2]int        `json:"pair"`
	VID    transport.VID `json:"vid"`
	Listed bool          `json:"listed"`
}

type routeLink struct {
	Link  string   `json:"link"`
	Pairs [][2]int `json:"pairs"`
}

// result makes the JSON.
func (s *shownPlan) result(links []routeLink) *routeResult {
	p := s.plan
	r := &routeResult{
		Schema: routeSchema, File: s.file, Topology: p.Topology, VIDs: p.VIDs, PCP: p.PCP, Pairs: []routePair{},
		Links: links,
	}
	for i, n := range p.Nodes {
		r.Nodes = append(r.Nodes, routeNode{i, n.Name, n.MAC, n.VID, n.Priority})
	}
	for pair, vid := range s.pairs {
		_, listed := p.Pairs[pair]
		r.Pairs = append(r.Pairs, routePair{[2]int{pair.A, pair.B}, vid, listed})
	}
	return r
}

// pairs yields the pairs to show and their VIDs.
func (s *shownPlan) pairs(yield func(plan.Pair, transport.VID) bool) {
	for a := range s.plan.Nodes {
		for b := a + 1; b < len(s.plan.Nodes); b++ {
			if s.node != allNodes && s.node != a && s.node != b {
				continue
			}
			if !yield(plan.Pair{A: a, B: b}, s.plan.PairVID(a, b)) {
				return
			}
		}
	}
}

// links returns the pairs that each link between switches carries; nil without a network.
func (s *shownPlan) links() ([]routeLink, error) {
	if s.network == nil {
		return nil, nil
	}
	paths, err := topology.NewPaths(s.network)
	if err != nil {
		return nil, err
	}
	links := make([]routeLink, len(s.network.Links))
	for i, name := range s.network.LinkNames() {
		links[i] = routeLink{name, [][2]int{}}
	}
	var path []topology.Hop
	for pair, vid := range s.pairs {
		if path, err = paths.Append(path[:0], pair.A, pair.B, vid); err != nil {
			return nil, err
		}
		for _, hop := range path {
			l := &links[hop.Link]
			l.Pairs = append(l.Pairs, [2]int{pair.A, pair.B})
		}
	}
	return links, nil
}

// writeLinks writes the pairs that share each link.
func (s *shownPlan) writeLinks(out io.Writer, links []routeLink) {
	fmt.Fprintf(out, "\n# %s: %s, %s\n", s.plan.Topology,
		cli.Count(len(s.network.Switches), "switch"), cli.Count(len(s.network.Links), "link"))
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# Link\tNumber\tPairs\n")
		for _, l := range links {
			if len(l.Pairs) > 0 || s.node == allNodes {
				fmt.Fprintf(w, "%s\t%d\t%s\n", l.Link, len(l.Pairs), pairList(l.Pairs))
			}
		}
	})
}

// maxLinkPairs is the number of pairs of a link that the text shows.
const maxLinkPairs = 16

func pairList(pairs [][2]int) string {
	var text []string
	for _, p := range pairs[:min(len(pairs), maxLinkPairs)] {
		text = append(text, fmt.Sprintf("%d-%d", p[0], p[1]))
	}
	if more := len(pairs) - maxLinkPairs; more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(text, " "), "-")
}
