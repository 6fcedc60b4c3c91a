package launch

import (
	"fmt"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// DemoNet is a place where a cluster can run in this process: a link per node, and the switches
// between them.
type DemoNet struct {
	Name  string
	Links []transport.Link
	Tops  []top
	Close func()
}

// top is one of several paths, with what has passed it.
type top struct {
	Name   string
	Frames func() uint64
}

var demoNets = map[string]func(nodes int) (*DemoNet, error){"fabric": fabricNet}

// OpenDemoNet makes a site of links of the given kind.
func OpenDemoNet(kind string, nodes int) (*DemoNet, error) {
	open, ok := demoNets[kind]
	if !ok {
		return nil, cli.Misuse("--link %q: no such kind (want one of %s)", kind, LinkKinds())
	}
	return open(nodes)
}

// fabricNet is a fat tree in memory: two leaves with half the nodes each, and two tops, one per
// VID.
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
	s := &DemoNet{Name: "an in-memory fabric: two leaf switches, two paths between them", Close: func() {}}
	for vid := transport.VID(1); vid <= 2; vid++ {
		sw := f.AddSwitch(fmt.Sprintf("top %d", vid))
		for _, leaf := range leaves {
			if _, err := f.Connect(leaf, sw, fabric.Trunk(vid)); err != nil {
				return nil, err
			}
		}
		s.Tops = append(s.Tops, top{sw.String(), func() uint64 {
			c := sw.Counters()
			return c.Forwarded + c.Flooded + c.Multicast
		}})
	}
	for k := range nodes {
		l, err := f.Attach(leaves[2*k/nodes], fabric.Station{})
		if err != nil {
			return nil, err
		}
		s.Links = append(s.Links, l)
	}
	return s, nil
}

// Passed returns how many frames each top has carried.
func (s *DemoNet) Passed() []uint64 {
	var n []uint64
	for _, t := range s.Tops {
		n = append(n, t.Frames())
	}
	return n
}

// Way says which tops carried frames since passed.
func (s *DemoNet) Way(before []uint64) string {
	text := ""
	for i, t := range s.Tops {
		if t.Frames() > before[i] {
			text += ", by way of " + t.Name
		}
	}
	return text
}
