package topology

import (
	"fmt"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// PortOptions say how switches are to be set up. The zero value is a good choice.
type PortOptions struct {
	// Untagged is the VLAN of frames without a tag at the hosts' ports, as other programs of the hosts may send them. It is
	// one of the topology's; its frames leave these ports without a tag, too. 0: such frames are dropped.
	Untagged transport.VID
	// Name is what ports are called in commands, with %d for the port's number. Empty is the renderer's own: swp%d, or
	// GigabitEthernet1/0/%d.
	Name string
}

// Port is a port of a switch, and what it needs to be told.
type Port struct {
	Switch   int
	Number   int             // on its switch, from 1: the hosts in their order, then the links in theirs
	Host     int             // that the cable leads to; or -1
	Link     int             // that the cable is; or -1
	Peer     int             // the other switch, of a link; or -1
	PeerPort int             // the port's number there; or 0
	Tagged   []transport.VID // the VLANs whose frames it takes and sends with a tag, ascending
	Untagged transport.VID   // the VLAN of frames without one; 0: none
}

// PortTable is what to set up on the switches of a network, so that it has its VLANs: a line for each port.
type PortTable struct {
	Topology *Topology
	Ports    []Port // sorted by switch, then number
	opt      PortOptions
}

// Ports returns what to set up on t's switches. A host's port is in all VLANs, so that the host can choose; a link's
// port in those that the link is in. Errors: ErrInvalid, also where the options do not fit.
func (t *Topology) Ports(opt PortOptions) (*PortTable, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	all, of := t.VIDs(), t.LinkVIDs()
	if err := opt.check(all); err != nil {
		return nil, err
	}
	tagged := slices.DeleteFunc(slices.Clone(all), func(v transport.VID) bool { return v == opt.Untagged })
	ports := make([][]Port, len(t.Switches))
	add := func(p Port) int {
		p.Number = len(ports[p.Switch]) + 1
		ports[p.Switch] = append(ports[p.Switch], p)
		return p.Number
	}
	for i, h := range t.Hosts {
		add(Port{Switch: h.Switch, Host: i, Link: -1, Peer: -1, Tagged: tagged, Untagged: opt.Untagged})
	}
	for i, l := range t.Links {
		a := add(Port{Switch: l.A, Host: -1, Link: i, Peer: l.B, Tagged: of[i]})
		b := add(Port{Switch: l.B, Host: -1, Link: i, Peer: l.A, Tagged: of[i], PeerPort: a})
		ports[l.A][a-1].PeerPort = b
	}
	return &PortTable{Topology: t, Ports: slices.Concat(ports...), opt: opt}, nil
}

func (o PortOptions) check(vids []transport.VID) error {
	if len(vids) == 0 {
		return invalid("no VLAN to set up (compute some)")
	}
	if o.Untagged != 0 && !slices.Contains(vids, o.Untagged) {
		return invalid("VLAN %d for frames without a tag is not in the topology (it has %s)", o.Untagged, FormatVIDs(vids))
	}
	return o.checkName()
}

// Leads returns the name of what a port's cable leads to: a host, or a switch and the port's number there.
func (p *PortTable) Leads(port Port) string {
	if port.Host >= 0 {
		return p.Topology.Hosts[port.Host].Name
	}
	return fmt.Sprintf("%s:%d", p.Topology.Switches[port.Peer], port.PeerPort)
}

// bySwitch calls do with each switch that has ports, and these.
func (p *PortTable) bySwitch(do func(name string, ports []Port)) {
	for rest := p.Ports; len(rest) > 0; {
		end := 1
		for end < len(rest) && rest[end].Switch == rest[0].Switch {
			end++
		}
		do(p.Topology.Switches[rest[0].Switch], rest[:end])
		rest = rest[end:]
	}
}

// vids returns the VLANs that some ports are in, ascending.
func vids(ports []Port) []transport.VID {
	var all []transport.VID
	for _, p := range ports {
		all = append(all, p.Tagged...)
		if p.Untagged != 0 {
			all = append(all, p.Untagged)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
