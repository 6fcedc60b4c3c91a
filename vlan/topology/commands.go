package topology

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// WriteBridge writes, for each switch, the commands of iproute2 that make a Linux bridge of it:
// with the trees of the VLANs, and so without a spanning tree protocol, and without other VLANs.
// The ports are swp1, swp2 and so on, as switchdev names them, or PortOptions.Name.
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
	for _, run := range runs(port.Tagged) {
		fmt.Fprintf(b, "bridge vlan add dev %s vid %s\n", dev, run)
	}
	if port.Untagged != 0 {
		fmt.Fprintf(b, "bridge vlan add dev %s vid %d pvid untagged\n", dev, port.Untagged)
	}
	fmt.Fprintf(b, "ip link set dev %s up\n", dev)
}

const (
	// The VIDs that switches with Cisco's commands treat as their own: the first is there always,
	// the others are reserved.
	ciscoDefault  transport.VID = 1
	ciscoReserved transport.VID = 1002
	ciscoLast     transport.VID = 1005

	// ciscoExtended is the first VID of the extended range, which VTP's versions 1 and 2 leave to
	// switches in transparent mode.
	ciscoExtended transport.VID = 1006
	// ciscoDescription is how long a description may be, in bytes.
	ciscoDescription = 240

	// runsPerLine is the number of runs of VIDs in a command: at most 90 characters, of 255 that
	// switches take.
	runsPerLine = 10
)

// WriteCisco writes, for each switch, its VLANs and ports in the manner of Cisco's IOS, which many
// makers follow: trunks with the VLANs of the topology and no others, and no spanning tree protocol
// for these. The ports are GigabitEthernet1/0/1 and so on, or PortOptions.Name. Frames without a
// tag are in a VLAN that no port lets through, or in PortOptions.Untagged. In names, "_" stands for
// "?", and what is longer than a description may be is cut off. The error is ErrInvalid,
// for VIDs that such switches reserve, or if no VID is left for frames without a tag.
func (p *PortTable) WriteCisco(w io.Writer) error {
	native, err := p.unusedVID()
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	p.bySwitch(func(name string, ports []Port) {
		fmt.Fprintf(b, "! on %s\nconfigure terminal\n", ciscoText(name))
		all := vidsOf(ports)
		fmt.Fprint(b, "! switches without ISL refuse the lines with \"encapsulation\": they do without\n")
		if len(all) > 0 && all[len(all)-1] >= ciscoExtended {
			fmt.Fprintf(b, "! VLANs from %d on are refused, unless VTP is transparent, off or of version 3:\n",
				ciscoExtended)
			fmt.Fprint(b, "! see \"show vtp status\", and give \"vtp mode transparent\" first\n")
		}
		for _, v := range all {
			if v != ciscoDefault {
				fmt.Fprintf(b, "vlan %d\n exit\n", v)
			}
		}
		for _, port := range ports {
			p.writeCiscoPort(b, port, native)
		}
		for _, run := range runs(all) { // last: until the ports are set up there may be loops
			fmt.Fprintf(b, "no spanning-tree vlan %s\n", run)
		}
		fmt.Fprint(b, "end\n\n")
	})
	return b.Flush()
}

// unusedVID returns the highest VID that no VLAN has.
func (p *PortTable) unusedVID() (transport.VID, error) {
	free := transport.MaxVID
	for _, v := range slices.Backward(p.Topology.VIDs()) {
		if v >= ciscoReserved && v <= ciscoLast {
			return 0, invalid("VLAN %d: such switches reserve VIDs %d to %d (choose another)",
				v, ciscoReserved, ciscoLast)
		}
		if v == free {
			free--
		}
	}
	if free == ciscoLast {
		return 0, invalid("no VID is left for frames without a tag (use fewer than %d VLANs)",
			transport.MaxVID-ciscoLast)
	}
	return free, nil
}

func (p *PortTable) writeCiscoPort(b *bufio.Writer, port Port, native transport.VID) {
	name := p.opt.portName(port.Number, "GigabitEthernet1/0/%d")
	fmt.Fprintf(b, "interface %s\n description %s\n", name, ciscoText("to "+p.Leads(port)))
	allowed := vidsOf([]Port{port})
	if len(allowed) == 0 {
		fmt.Fprint(b, " shutdown\n exit\n")
		return
	}
	if port.Untagged != 0 {
		native = port.Untagged
	}
	// First: a switch that knows ISL, too, refuses to be a trunk until it is told which of the two.
	fmt.Fprint(b, " switchport trunk encapsulation dot1q\n switchport mode trunk\n")
	fmt.Fprintf(b, " switchport trunk native vlan %d\n", native)
	add := ""
	for line := range slices.Chunk(runs(allowed), runsPerLine) {
		fmt.Fprintf(b, " switchport trunk allowed vlan %s%s\n", add, strings.Join(line, ","))
		add = "add "
	}
	fmt.Fprint(b, " no shutdown\n exit\n")
}

// ciscoText is a text as the session of such a switch takes it: without "?", which asks for help
// wherever it stands, and cut to ciscoDescription bytes, behind a whole character.
func ciscoText(text string) string {
	text = strings.ReplaceAll(text, "?", "_")
	if len(text) > ciscoDescription {
		text = strings.ToValidUTF8(text[:ciscoDescription], "")
	}
	return text
}

// vidsOf returns the VLANs of some ports, ascending.
func vidsOf(ports []Port) []transport.VID {
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
