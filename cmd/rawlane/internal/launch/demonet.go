package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// DemoNet is a small network inside this process: a link per node, and switches between them.
type DemoNet struct {
	Name  string
	Links []transport.Link
	Tops  []Top
	Close func()
}

// Top is a switch in the middle of one of several paths.
type Top struct {
	Name   string
	Frames func() uint64 // forwarded so far
}

// OpenDemoNet makes a network with links of the given kind: on interfaces of this machine, one for
// each node, if there are any.
func OpenDemoNet(kind string, nodes int, interfaces []string) (*DemoNet, error) {
	switch {
	case len(interfaces) > 0:
		return ownNet(kind, nodes, interfaces)
	case kind == inMemory:
		return fabricNet(nodes)
	case kind == OverSHM:
		return segmentNet(nodes)
	case kernelLinks[kind] != nil:
		return kernelNet(kind, nodes)
	}
	return nil, noSuchKind(kind)
}

// fabricNet is a fat tree in memory: two leaves with half the nodes each, and a top for each VID.
//
//	top 1 (VID 1)   top 2 (VID 2)
//	      |  \      /  |
//	      |   \    /   |
//	     leaf 0    leaf 1
func fabricNet(nodes int) (*DemoNet, error) {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		return nil, err
	}
	leaves := []*fabric.Switch{f.AddSwitch("leaf 0"), f.AddSwitch("leaf 1")}
	d := &DemoNet{Name: "an in-memory fabric: two leaf switches, two paths between them", Close: func() {}}
	for vid := transport.VID(1); vid <= 2; vid++ {
		sw := f.AddSwitch(fmt.Sprintf("top %d", vid))
		for _, leaf := range leaves {
			if _, err := f.Connect(leaf, sw, fabric.Trunk(vid)); err != nil {
				return nil, err
			}
		}
		d.Tops = append(d.Tops, Top{sw.String(), func() uint64 {
			c := sw.Counters()
			return c.Forwarded + c.Flooded + c.Multicast
		}})
	}
	for k := range nodes {
		l, err := f.Attach(leaves[2*k/nodes], fabric.Station{})
		if err != nil {
			return nil, err
		}
		d.Links = append(d.Links, l)
	}
	return d, nil
}

// kernelNet is network namespaces on a Linux bridge, with a kernel link in each.
func kernelNet(kind string, nodes int) (*DemoNet, error) {
	cfg := testbed.Config{Nodes: nodes, NICs: 1, Bridge: true}
	links, bed, err := inNamespaces(kind, linkOptions{}, cfg)
	if kind == overUDP && Refused(err) {
		reason := err
		if links, err = onLoopback(cfg); err == nil {
			name := fmt.Sprintf(NoNamespaces, reason)
			return &DemoNet{Name: name, Links: slices.Concat(links...), Close: func() {}}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &DemoNet{
		Name:  fmt.Sprintf("%s links: a network namespace for each, joined by a Linux bridge", kind),
		Links: slices.Concat(links...),
		Close: func() { _ = bed.Close() },
	}, nil
}

// ownNet is interfaces of this machine that are on one network, with a kernel link on each.
func ownNet(kind string, nodes int, interfaces []string) (*DemoNet, error) {
	open := kernelLinks[kind]
	switch {
	case open == nil:
		return nil, cli.Misuse("--interface: is for --link packet, ring, udp or xdp")
	case len(interfaces) != nodes:
		return nil, cli.Misuse("--interface %s: names %d (want %d, one for each node)",
			strings.Join(interfaces, ","), len(interfaces), nodes)
	}
	d := &DemoNet{
		Name:  fmt.Sprintf("%s links: interfaces %s of this machine", kind, strings.Join(interfaces, ", ")),
		Close: func() {}, // the endpoints close their links
	}
	for _, name := range interfaces {
		l, err := open(name, linkOptions{})
		if err != nil {
			for _, l := range d.Links {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		d.Links = append(d.Links, l)
	}
	return d, nil
}

// Passed returns how many frames each top has forwarded.
func (d *DemoNet) Passed() []uint64 {
	var n []uint64
	for _, t := range d.Tops {
		n = append(n, t.Frames())
	}
	return n
}

// Way names the tops that have forwarded frames since Passed returned before.
func (d *DemoNet) Way(before []uint64) string {
	text := ""
	for i, t := range d.Tops {
		if t.Frames() > before[i] {
			text += ", by way of " + t.Name
		}
	}
	return text
}
