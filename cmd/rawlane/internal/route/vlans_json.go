package route

import (
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/topology"
)

// vlansSchema is the version of vlansResult as JSON. docs/topologies.md describes it.
const vlansSchema = 1

// vlansResult is a network's VLANs and ports as JSON.
type vlansResult struct {
	Schema   int            `json:"schema"`
	Topology string         `json:"topology"`
	Switches int            `json:"switches"`
	Hosts    int            `json:"hosts"`
	Links    int            `json:"links"`
	VLANs    []vlansVLAN    `json:"vlans"`
	Ports    []vlansPort    `json:"ports"`
	Computed *vlansComputed `json:"computed,omitempty"`
}

type vlansVLAN struct {
	VID   transport.VID `json:"vid"`
	Links []string      `json:"links"`
}

type vlansPort struct {
	Switch   string          `json:"switch"`
	Port     int             `json:"port"`
	Host     string          `json:"host,omitempty"`
	Link     string          `json:"link,omitempty"`
	Peer     string          `json:"peer,omitempty"`
	PeerPort int             `json:"peer_port,omitempty"`
	Tagged   []transport.VID `json:"tagged"`
	Untagged transport.VID   `json:"untagged,omitempty"`
}

type vlansComputed struct {
	Paths       []vlansPath `json:"paths"`
	Dropped     int         `json:"dropped"`
	AtLeast     int         `json:"at_least"`
	UnusedLinks []string    `json:"unused_links"`
}

type vlansPath struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Links []string      `json:"links"`
	VID   transport.VID `json:"vid,omitempty"`
}

// result makes the JSON.
func (r *vlansVerb) result(table *topology.PortTable) *vlansResult {
	t := r.network
	names := t.LinkNames()
	result := &vlansResult{
		Schema: vlansSchema, Topology: r.topology,
		Switches: len(t.Switches), Hosts: len(t.Hosts), Links: len(t.Links),
		VLANs: []vlansVLAN{}, Ports: []vlansPort{},
	}
	for _, v := range t.VLANs {
		result.VLANs = append(result.VLANs, vlansVLAN{v.VID, namesOf(names, v.Links)})
	}
	for _, p := range table.Ports {
		port := vlansPort{
			Switch: t.Switches[p.Switch], Port: p.Number, PeerPort: p.PeerPort, Tagged: p.Tagged, Untagged: p.Untagged,
		}
		if port.Tagged == nil {
			port.Tagged = []transport.VID{}
		}
		if p.Host >= 0 {
			port.Host = t.Hosts[p.Host].Name
		} else {
			port.Link, port.Peer = names[p.Link], t.Switches[p.Peer]
		}
		result.Ports = append(result.Ports, port)
	}
	if r.report != nil {
		result.Computed = computedJSON(t, r.report, names)
	}
	return result
}

// namesOf returns the names of links by number.
func namesOf(names []string, links []int) []string {
	some := make([]string, len(links))
	for i, l := range links {
		some[i] = names[l]
	}
	return some
}

func computedJSON(t *topology.Topology, report *topology.VLANReport, names []string) *vlansComputed {
	c := &vlansComputed{
		Paths: []vlansPath{}, Dropped: report.Dropped, AtLeast: report.AtLeast,
		UnusedLinks: namesOf(names, report.UnusedLinks),
	}
	for _, p := range report.Paths {
		path := vlansPath{From: t.Switches[p.From], To: t.Switches[p.To], VID: p.VID}
		for _, h := range p.Hops {
			path.Links = append(path.Links, names[h.Link])
		}
		c.Paths = append(c.Paths, path)
	}
	return c
}
