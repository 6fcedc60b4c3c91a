package route

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/plan"
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

// result makes the JSON of the plan and of the pairs that each link carries.
func (s *shownPlan) result(carried [][]plan.Pair) *routeResult {
	p := s.plan
	r := &routeResult{
		Schema: routeSchema, File: s.file, Topology: p.Topology, VIDs: p.VIDs, PCP: p.PCP, Pairs: []routePair{},
	}
	for i, n := range p.Nodes {
		r.Nodes = append(r.Nodes, routeNode{i, n.Name, n.MAC, n.VID, n.Priority})
	}
	for pair, vid := range s.pairs {
		_, listed := p.Pairs[pair]
		r.Pairs = append(r.Pairs, routePair{[2]int{pair.A, pair.B}, vid, listed})
	}
	for link, pairs := range carried {
		r.Links = append(r.Links, routeLink{s.network.LinkName(link), pairNumbers(pairs)})
	}
	return r
}

// pairNumbers is pairs as JSON has them: never null.
func pairNumbers(pairs []plan.Pair) [][2]int {
	numbers := make([][2]int, len(pairs))
	for i, p := range pairs {
		numbers[i] = [2]int{p.A, p.B}
	}
	return numbers
}
