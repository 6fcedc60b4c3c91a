package route

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
)

// pairs calls f with the pairs that are shown, and their VIDs.
func (s *routeShow) pairs(f func(vlan.Pair, transport.VID) error) error {
	for a := range s.plan.Nodes {
		for b := a + 1; b < len(s.plan.Nodes); b++ {
			if s.node != allNodes && s.node != a && s.node != b {
				continue
			}
			if err := f(vlan.Pair{A: a, B: b}, s.plan.PairVID(a, b)); err != nil {
				return err
			}
		}
	}
	return nil
}

// linkPairs returns for each link between switches the pairs that it carries.
func (s *routeShow) linkPairs() ([][]vlan.Pair, error) {
	paths, err := vlan.NewPaths(s.network)
	if err != nil {
		return nil, err
	}
	carried := make([][]vlan.Pair, len(s.network.Links))
	var path []vlan.Hop
	err = s.pairs(func(pair vlan.Pair, vid transport.VID) (err error) {
		path, err = paths.Append(path[:0], pair.A, pair.B, vid)
		for _, hop := range path {
			carried[hop.Link] = append(carried[hop.Link], pair)
		}
		return err
	})
	return carried, err
}

// maxLinkPairs is how many pairs of a link the text shows.
const maxLinkPairs = 16

// writeLinks writes which pairs share a link.
func (s *routeShow) writeLinks(b *strings.Builder) error {
	carried, err := s.linkPairs()
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# %s: %s, %s\n", s.plan.Topology, cli.Count(len(s.network.Switches), "switch"), cli.Count(len(s.network.Links), "link"))
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "# Link\tNumber\tPairs\n")
	for link, pairs := range carried {
		if len(pairs) > 0 || s.node == allNodes {
			fmt.Fprintf(table, "%s\t%d\t%s\n", s.network.LinkName(link), len(pairs), pairList(pairs))
		}
	}
	return table.Flush()
}

func pairList(pairs []vlan.Pair) string {
	var text []string
	for i, pair := range pairs {
		if i == maxLinkPairs {
			text = append(text, fmt.Sprintf("and %d more", len(pairs)-i))
			break
		}
		text = append(text, pair.String())
	}
	return cmp.Or(strings.Join(text, " "), "-")
}
