package topology

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rawlane/rawlane/transport"
)

// PortOptions say how switches are configured. The zero value is a good choice.
type PortOptions struct {
	// Untagged is the VLAN of frames without a tag at the hosts' ports, as other programs of the
	// hosts may send them. It is one of the topology's; its frames leave these ports without a tag,
	// too. 0 drops such frames.
	Untagged transport.VID
	// Name is the name of ports in commands, with %d for the port's number. Empty is that of the
	// commands: swp%d, or GigabitEthernet1/0/%d.
	Name string
}

// Port is the configuration of a port of a switch.
type Port struct {
	Switch   int
	Number   int             // on its switch, from 1: the hosts in their order, then the links in theirs
	Host     int             // at the end of the cable; or -1
	Link     int             // that the cable is; or -1
	Peer     int             // the other switch, of a link; or -1
	PeerPort int             // the port's number there; or 0
	Tagged   []transport.VID // the VLANs whose frames it takes and sends with a tag, ascending
	Untagged transport.VID   // the VLAN of frames without one; 0: none
}

// PortTable is the configuration of all switches of a network, so that it has its VLANs.
type PortTable struct {
	Topology *Topology
	Ports    []Port // sorted by switch, then number
	opt      PortOptions
}

// Ports returns the configuration of t's switches. A host's port is in all VLANs, so that the host
// can choose; a link's port is in those of the link. The error is ErrInvalid, also for options that
// do not fit.
func (t *Topology) Ports(opt PortOptions) (*PortTable, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	all, ofLink := t.VIDs(), t.LinkVIDs()
	if err := opt.check(all); err != nil {
		return nil, err
	}
	tagged := slices.DeleteFunc(slices.Clone(all), func(v transport.VID) bool { return v == opt.Untagged })
	ports := make([][]Port, len(t.Switches))
	add := func(p Port) *Port {
		of := &ports[p.Switch]
		p.Number = len(*of) + 1
		*of = append(*of, p)
		return &(*of)[p.Number-1]
	}
	for i, h := range t.Hosts {
		add(Port{Switch: h.Switch, Host: i, Link: -1, Peer: -1, Tagged: tagged, Untagged: opt.Untagged})
	}
	for i, l := range t.Links {
		a := add(Port{Switch: l.A, Host: -1, Link: i, Peer: l.B, Tagged: ofLink[i]})
		b := add(Port{Switch: l.B, Host: -1, Link: i, Peer: l.A, Tagged: ofLink[i]})
		a.PeerPort, b.PeerPort = b.Number, a.Number
	}
	return &PortTable{Topology: t, Ports: slices.Concat(ports...), opt: opt}, nil
}

// CheckName returns an error unless Name is empty, or has a place for the number and nothing that
// would break a command.
func (o PortOptions) CheckName() error {
	before, after, found := strings.Cut(o.Name, "%d")
	rest := before + after
	if o.Name != "" && (!found || !printable(rest) || strings.ContainsAny(rest, "%;&|<>$`'\"\\#*?()")) {
		return fmt.Errorf("port name %q: want a name with one %%d for the port's number, such as swp%%d", o.Name)
	}
	return nil
}

// check makes sure that there are VLANs that may be set up so.
func (o PortOptions) check(vids []transport.VID) error {
	if len(vids) == 0 {
		return invalid("no VLAN to set up (compute some)")
	}
	if o.Untagged != 0 && !slices.Contains(vids, o.Untagged) {
		return invalid("VLAN %d for frames without a tag is not in the topology (it has %s)",
			o.Untagged, FormatVIDs(vids))
	}
	if err := o.CheckName(); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// portName returns the name of a port: by the options, or by the commands' own pattern.
func (o PortOptions) portName(number int, pattern string) string {
	if o.Name != "" {
		pattern = o.Name
	}
	return strings.Replace(pattern, "%d", strconv.Itoa(number), 1)
}

// Leads returns the name of the other end of a port's cable: a host, or a switch and the port's
// number there.
func (p *PortTable) Leads(port Port) string {
	if port.Host >= 0 {
		return p.Topology.Hosts[port.Host].Name
	}
	return fmt.Sprintf("%s:%d", p.Topology.Switches[port.Peer], port.PeerPort)
}

// WriteTable writes one line for each port: its switch and number, the other end, and its VLANs.
func (p *PortTable) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "# switch\tport\tleads to\ttagged\tuntagged")
	for _, port := range p.Ports {
		untagged := "none"
		if port.Untagged != 0 {
			untagged = strconv.Itoa(int(port.Untagged))
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n",
			p.Topology.Switches[port.Switch], port.Number, p.Leads(port), FormatVIDs(port.Tagged), untagged)
	}
	return tw.Flush()
}

// bySwitch calls do with each switch that has ports, and its ports.
func (p *PortTable) bySwitch(do func(name string, ports []Port)) {
	for rest := p.Ports; len(rest) > 0; {
		end := slices.IndexFunc(rest, func(port Port) bool { return port.Switch != rest[0].Switch })
		if end < 0 {
			end = len(rest)
		}
		do(p.Topology.Switches[rest[0].Switch], rest[:end])
		rest = rest[end:]
	}
}
