package route

import (
	"encoding/json"
	"io"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
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

func (s *routeShow) writeJSON(out io.Writer) error {
	p := s.plan
	r := routeResult{Schema: routeSchema, File: s.file, Topology: p.Topology, VIDs: p.VIDs, PCP: p.PCP, Pairs: []routePair{}}
	for i, n := range p.Nodes {
		r.Nodes = append(r.Nodes, routeNode{i, n.Name, n.MAC, n.VID, n.Priority})
	}
	_ = s.pairs(func(pair vlan.Pair, vid transport.VID) error { // which never fails
		_, listed := p.Pairs[pair]
		r.Pairs = append(r.Pairs, routePair{[2]int{pair.A, pair.B}, vid, listed})
		return nil
	})
	if s.network != nil {
		carried, err := s.linkPairs()
		if err != nil {
			return err
		}
		for link, pairs := range carried {
			l := routeLink{s.network.LinkName(link), [][2]int{}}
			for _, pair := range pairs {
				l.Pairs = append(l.Pairs, [2]int{pair.A, pair.B})
			}
			r.Links = append(r.Links, l)
		}
	}
	return json.NewEncoder(out).Encode(&r)
}
