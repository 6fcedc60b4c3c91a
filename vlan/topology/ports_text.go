package topology

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rawlane/rawlane/transport"
)

// checkName makes sure that Name has a place for the number, and nothing that would break a command.
func (o PortOptions) checkName() error {
	before, after, found := strings.Cut(o.Name, "%d")
	if o.Name != "" && (!found || !printable(before) || !printable(after) || strings.ContainsAny(before+after, "%;&|<>$`'\"\\#*?()")) {
		return invalid("port name %q: want a name with one %%d for the port's number, such as swp%%d", o.Name)
	}
	return nil
}

// portName returns what a port is called, by the options or else by a renderer.
func (o PortOptions) portName(number int, renderers string) string {
	if o.Name != "" {
		renderers = o.Name
	}
	return strings.Replace(renderers, "%d", strconv.Itoa(number), 1)
}

// WriteTable writes one line for each port: its switch and number, what it leads to, and its VLANs.
func (p *PortTable) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "# switch\tport\tleads to\ttagged\tuntagged")
	for _, port := range p.Ports {
		untagged := "none"
		if port.Untagged != 0 {
			untagged = strconv.Itoa(int(port.Untagged))
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n", p.Topology.Switches[port.Switch], port.Number, p.Leads(port), FormatVIDs(port.Tagged), untagged)
	}
	return tw.Flush()
}

// WriteBridge writes, for each switch, the commands of iproute2 that make a Linux bridge of it: with one tree per VLAN from
// here, and so without a spanning tree protocol, and without a VLAN that is not in the topology. The ports are
// swp1, swp2 and so on, as switchdev calls them, or PortOptions.Name.
func (p *PortTable) WriteBridge(w io.Writer) error {
	b := bufio.NewWriter(w)
	p.bySwitch(func(name string, ports []Port) {
		fmt.Fprintf(b, "# on %s\n", name)
		fmt.Fprintln(b, "ip link add name br0 type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0")
		for _, port := range ports {
			p.writeBridgePort(b, port)
		}
		fmt.Fprint(b, "ip link set dev br0 up\n\n")
	})
	return b.Flush()
}

func (p *PortTable) writeBridgePort(b *bufio.Writer, port Port) {
	dev := p.opt.portName(port.Number, "swp%d")
	if len(port.Tagged) == 0 && port.Untagged == 0 {
		fmt.Fprintf(b, "ip link set dev %s down # to %s: in no VLAN\n", dev, p.Leads(port))
		return
	}
	fmt.Fprintf(b, "ip link set dev %s master br0 # to %s\n", dev, p.Leads(port))
	for _, run := range vidRuns(port.Tagged) {
		fmt.Fprintf(b, "bridge vlan add dev %s vid %s\n", dev, run)
	}
	if port.Untagged != 0 {
		fmt.Fprintf(b, "bridge vlan add dev %s vid %d pvid untagged\n", dev, port.Untagged)
	}
	fmt.Fprintf(b, "ip link set dev %s up\n", dev)
}

// The VIDs that switches with Cisco's commands treat as their own.
const (
	ciscoDefault  transport.VID = 1 // is there always
	ciscoReserved transport.VID = 1002
	ciscoLast     transport.VID = 1005 // reserved
)

// WriteCisco writes, for each switch, its VLANs and ports in the manner of Cisco's IOS, which many makers follow: trunks
// with the VLANs of the topology and no others, and no spanning tree protocol for these. The ports are
// GigabitEthernet1/0/1 and so on, or PortOptions.Name. Frames without a tag are in a VLAN that no port lets through, or in
// PortOptions.Untagged. Errors: ErrInvalid, for VIDs that such switches reserve or where no VID is left for this.
func (p *PortTable) WriteCisco(w io.Writer) error {
	native, err := p.unusedVID()
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	p.bySwitch(func(name string, ports []Port) {
		fmt.Fprintf(b, "! on %s\nconfigure terminal\n", name)
		all := vids(ports)
		for _, v := range all {
			if v != ciscoDefault {
				fmt.Fprintf(b, "vlan %d\n exit\n", v)
			}
		}
		for _, port := range ports {
			p.writeCiscoPort(b, port, native)
		}
		for _, run := range vidRuns(all) { // last: until the ports are set up there may be loops
			fmt.Fprintf(b, "no spanning-tree vlan %s\n", run)
		}
		fmt.Fprint(b, "end\n\n")
	})
	return b.Flush()
}

// unusedVID returns the highest VID that no VLAN has.
func (p *PortTable) unusedVID() (transport.VID, error) {
	free := transport.MaxVID
	for i := len(p.Topology.VLANs) - 1; i >= 0; i-- {
		v := p.Topology.VLANs[i].VID
		if v >= ciscoReserved && v <= ciscoLast {
			return 0, invalid("VLAN %d: such switches reserve VIDs %d to %d (choose another)", v, ciscoReserved, ciscoLast)
		}
		if v == free {
			free--
		}
	}
	if free == ciscoLast {
		return 0, invalid("no VID is left for frames without a tag (use fewer than %d VLANs)", transport.MaxVID-ciscoLast)
	}
	return free, nil
}

func (p *PortTable) writeCiscoPort(b *bufio.Writer, port Port, native transport.VID) {
	fmt.Fprintf(b, "interface %s\n description to %s\n", p.opt.portName(port.Number, "GigabitEthernet1/0/%d"), p.Leads(port))
	allowed := vids([]Port{port})
	if len(allowed) == 0 {
		fmt.Fprint(b, " shutdown\n exit\n")
		return
	}
	if port.Untagged != 0 {
		native = port.Untagged
	}
	fmt.Fprintf(b, " switchport mode trunk\n switchport trunk native vlan %d\n", native)
	add := ""
	for _, line := range vidLines(allowed) {
		fmt.Fprintf(b, " switchport trunk allowed vlan %s%s\n", add, line)
		add = "add "
	}
	fmt.Fprint(b, " no shutdown\n exit\n")
}
