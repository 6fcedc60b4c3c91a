package route

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

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

// linkPairs returns the pairs that each link between switches carries.
func (s *shownPlan) linkPairs() ([][]plan.Pair, error) {
	paths, err := topology.NewPaths(s.network)
	if err != nil {
		return nil, err
	}
	carried := make([][]plan.Pair, len(s.network.Links))
	var path []topology.Hop
	for pair, vid := range s.pairs {
		if path, err = paths.Append(path[:0], pair.A, pair.B, vid); err != nil {
			return nil, err
		}
		for _, hop := range path {
			carried[hop.Link] = append(carried[hop.Link], pair)
		}
	}
	return carried, nil
}

// writeLinks writes the pairs that share each link.
func (s *shownPlan) writeLinks(out io.Writer, carried [][]plan.Pair) {
	fmt.Fprintf(out, "\n# %s: %s, %s\n", s.plan.Topology,
		cli.Count(len(s.network.Switches), "switch"), cli.Count(len(s.network.Links), "link"))
	cli.Table(out, func(w io.Writer) {
		fmt.Fprintf(w, "# Link\tNumber\tPairs\n")
		for link, pairs := range carried {
			if len(pairs) > 0 || s.node == allNodes {
				fmt.Fprintf(w, "%s\t%d\t%s\n", s.network.LinkName(link), len(pairs), pairList(pairs))
			}
		}
	})
}

// maxLinkPairs is the number of pairs of a link that the text shows.
const maxLinkPairs = 16

func pairList(pairs []plan.Pair) string {
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
