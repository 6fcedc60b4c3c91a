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
